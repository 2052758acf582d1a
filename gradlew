#!/bin/sh
# Builds mpjdev with Gradle, getting one first if need be: ./gradlew run, ./gradlew check. In this order:
#   1. the command in $GRADLE, if set
#   2. `gradle` on the PATH
#   3. Debian's package (4.4.1 on Debian 12), installed with apt-get
#   4. the distribution that gradle/wrapper/gradle-wrapper.properties pins, downloaded and checked against its sum
set -eu

java_least=17
cargo_least=88 # of 1.x

root=$(cd "$(dirname "$0")" && pwd)
cd "$root"

say() { printf 'gradlew: %s\n' "$*" >&2; }
fail() {
    say "$@"
    exit 1
}
have() { command -v "$1" >/dev/null 2>&1; }

# ---- The tools that the build needs, before anything is installed or downloaded

get_java="Install one (Debian: apt-get install openjdk-17-jdk-headless) or set JAVA_HOME to one."
get_cargo="Install a current Rust with rustup (https://rustup.rs)."

# Sets JAVA_HOME and java_major. javac itself knows best where it lives and what it is, whatever links lead to it.
find_java() {
    if [ -n "${JAVA_HOME:-}" ]; then
        javac=$JAVA_HOME/bin/javac
        [ -x "$javac" ] || fail "JAVA_HOME is $JAVA_HOME, but there is no bin/javac in it. mpjdev needs a JDK $java_least or later. $get_java"
    else
        javac=$(command -v javac) || fail "there is no javac on the PATH and JAVA_HOME is not set. mpjdev needs a JDK $java_least or later. $get_java"
    fi
    facts=$("$javac" -J-XshowSettings:properties -version 2>&1) || fail "$javac does not run ($facts). mpjdev needs a JDK $java_least or later. $get_java"
    java_major=$(printf '%s\n' "$facts" | sed -n 's/^ *java\.specification\.version = //p')
    JAVA_HOME=$(printf '%s\n' "$facts" | sed -n 's/^ *java\.home = //p')
    case $java_major in
    '' | *[!0-9]*) old=yes ;; # "1.8", or not a JDK that we know how to ask
    *) [ "$java_major" -ge $java_least ] && old= || old=yes ;;
    esac
    [ -z "$old" ] || fail "$javac is version ${java_major:-unknown}, but mpjdev needs a JDK $java_least or later. $get_java"
    export JAVA_HOME
}

find_cargo() {
    # rustup puts cargo here, and into the PATH of login shells only.
    have cargo || PATH=$PATH:${CARGO_HOME:-$HOME/.cargo}/bin
    have cargo || fail "there is no cargo on the PATH. mpjdev needs cargo 1.$cargo_least or later. $get_cargo"
    version=$(cargo --version 2>&1) || fail "cargo does not run ($version). $get_cargo"
    minor=$(printf '%s\n' "$version" | sed -n 's/^cargo 1\.\([0-9]*\)\..*/\1/p')
    # Nothing matches a cargo 2, which may pass.
    [ -z "$minor" ] || [ "$minor" -ge $cargo_least ] ||
        fail "$version is too old: mpjdev needs cargo 1.$cargo_least or later. $get_cargo With rustup already here: rustup update stable."
    export PATH
    have cc || have gcc || have clang ||
        fail "there is no C compiler (cc), which Rust needs to link. Install one (Debian: apt-get install gcc libc6-dev)."
}

# ---- Gradle

# Debian's own start script asks the JVM for its version on every call, which prints three lines. This starts the same
# program without. It also goes without a daemon: each call then has its own environment and the terminal to itself.
run_debian() {
    jar=$1
    shift
    options='--add-opens=java.base/java.lang=ALL-UNNAMED --add-opens=java.base/java.util=ALL-UNNAMED'
    # Two warnings of newer JVMs about old libraries inside Gradle.
    [ "$java_major" -lt 24 ] || options="$options --enable-native-access=ALL-UNNAMED --sun-misc-unsafe-memory-access=allow"
    # shellcheck disable=SC2086
    exec "$JAVA_HOME/bin/java" $options ${JAVA_OPTS:-} ${GRADLE_OPTS:-} -Dorg.gradle.daemon=false \
        -Dorg.gradle.appname=gradle -classpath "$jar" org.gradle.launcher.GradleMain "$@"
}

run_gradle() {
    command=$1
    shift
    case $(readlink -f "$(command -v "$command")") in
    /usr/share/gradle/bin/gradle)
        for jar in /usr/share/gradle/lib/gradle-launcher-4.4*.jar; do
            [ ! -f "$jar" ] || run_debian "$jar" "$@"
        done
        ;;
    esac
    exec "$command" "$@"
}

install_debian() {
    have apt-get || return 1
    if [ "$(id -u)" = 0 ]; then
        sudo=
    elif have sudo; then
        sudo=sudo
    else
        return 1
    fi
    say "no Gradle here; installing Debian's package 'gradle' with ${sudo:+sudo }apt-get"
    log=$(mktemp)
    # An update may fail over a source that has nothing to do with this package, so its status does not count.
    if {
        $sudo apt-get update
        # A new machine often installs updates meanwhile, which keeps the lock for some minutes.
        $sudo env DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=300 install -y --no-install-recommends gradle
    } >"$log" 2>&1 && have gradle; then
        rm -f "$log"
        return 0
    fi
    say "apt-get could not install it; its last words:"
    tail -n 5 "$log" >&2
    rm -f "$log"
    return 1
}

property() { sed -n "s/^$1=//p" gradle/wrapper/gradle-wrapper.properties | sed 's/\\:/:/g'; }

# Sets downloaded to the pinned Gradle's start script.
download_pinned() {
    url=$(property distributionUrl)
    sum=$(property distributionSha256Sum)
    home=${GRADLE_USER_HOME:-$HOME/.gradle}/mpjdev-dists/$sum
    downloaded=$home/$(basename "$url" -bin.zip)/bin/gradle
    [ ! -x "$downloaded" ] || return 0

    work=$home.$$
    mkdir -p "$work"
    trap 'rm -rf "$work"' EXIT
    say "downloading $url"
    if have curl; then
        curl -fsSL --connect-timeout 20 -o "$work/gradle.zip" "$url" || return 1
    elif have wget; then
        wget -q -T 20 -O "$work/gradle.zip" "$url" || return 1
    else
        say "there is neither curl nor wget"
        return 1
    fi
    printf '%s  %s\n' "$sum" "$work/gradle.zip" | sha256sum -c - >/dev/null 2>&1 ||
        fail "what $url answered does not have the SHA-256 sum that gradle/wrapper/gradle-wrapper.properties states; not used"
    (cd "$work" && "$JAVA_HOME/bin/jar" xf gradle.zip) || return 1
    rm "$work/gradle.zip"
    chmod +x "$work"/*/bin/gradle
    # Complete before it gets its name, so that two builds at once, or a killed one, leave no half.
    mv "$work" "$home" 2>/dev/null || true
    rm -rf "$work"
    trap - EXIT
    [ -x "$downloaded" ]
}

find_java
find_cargo

if [ -n "${GRADLE:-}" ]; then
    have "$GRADLE" || fail "GRADLE is $GRADLE, but that is no command."
    run_gradle "$GRADLE" "$@"
fi
if have gradle || install_debian; then run_gradle gradle "$@"; fi
if download_pinned; then run_gradle "$downloaded" "$@"; fi
fail "no Gradle was found, installed or downloaded. Install Gradle 7.3 or later, or Debian's package 'gradle', or set GRADLE to a gradle command."
