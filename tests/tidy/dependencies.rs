//! Dependencies between crates.

use std::collections::HashSet;

use crate::text::has_word;
use crate::tree::{Source, none, read, root, rust_sources};

/// Crates of ours that others may depend on.
const OURS: [&str; 13] = [
    "buffer",
    "datatype",
    "group",
    "reduction",
    "schedule",
    "proto",
    "sys",
    "logging",
    "transport",
    "engine",
    "bootstrap",
    "jni",
    "cli",
];
/// Those whose other dependencies are in the table one by one.
const PURE: [&str; 8] = ["buffer", "datatype", "group", "reduction", "schedule", "proto", "sys", "logging"];

/// Names of the dependencies in the sections of a manifest that `picks` picks.
fn dependencies(manifest: &str, picks: impl Fn(&str) -> bool) -> Vec<String> {
    let mut section = String::new();
    let mut names = Vec::new();
    for line in manifest.lines().map(str::trim) {
        if let Some(header) = line.strip_prefix('[') {
            section = header.trim_end_matches(']').to_owned();
        } else if picks(&section)
            && let Some((name, _)) = line.split_once(['.', '=', ' '])
            && !line.starts_with('#')
        {
            names.push(name.to_owned());
        }
    }
    names
}

/// Those that the built crate has, without its tests'.
fn normal_dependencies(name: &str) -> Vec<String> {
    let manifest = read(&root().join(format!("rust/{name}/Cargo.toml")));
    dependencies(&manifest, |section| section == "dependencies" || section == "build-dependencies")
}

/// The row of a crate in ARCHITECTURE.md's table: what it may use.
fn allowed(name: &str) -> Vec<String> {
    let text = read(&root().join("ARCHITECTURE.md"));
    let row = text.lines().find_map(|line| line.strip_prefix(&format!("| {name} |")));
    let row = row.unwrap_or_else(|| panic!("ARCHITECTURE.md's table has no row for {name}"));
    let uses = row.split('|').next().unwrap_or_default().split(',').map(str::trim);
    // "buffer::layout" is an edge to buffer; what of it is used is checked in the sources.
    uses.map(|u| u.split("::").next().unwrap_or(u).to_owned()).collect()
}

#[test]
fn crates_of_ours_depend_on_each_other_as_the_table_says() {
    let mut findings = Vec::new();
    for name in OURS {
        let allowed = allowed(name);
        for dependency in normal_dependencies(name) {
            let Some(ours) = dependency.strip_prefix("mpjdev-") else { continue };
            if !allowed.iter().any(|a| a == ours) {
                findings.push(format!("{name} depends on {ours}, the table allows {allowed:?}"));
            }
        }
    }
    none(findings, "an edge that ARCHITECTURE.md does not draw");
}

#[test]
fn pure_crates_and_the_leaf_depend_on_nothing_but_what_the_table_names() {
    let mut findings = Vec::new();
    for name in PURE {
        let allowed = allowed(name);
        let others = normal_dependencies(name).into_iter().filter(|d| !d.starts_with("mpjdev-"));
        let others = others.filter(|dependency| !allowed.contains(dependency));
        findings.extend(others.map(|dependency| format!("{name} depends on {dependency}")));
    }
    none(findings, "a dependency that ARCHITECTURE.md does not name");
}

/// The boundary to Java is one crate.
#[test]
fn only_the_jni_crate_depends_on_jni() {
    for name in OURS.into_iter().filter(|name| *name != "jni") {
        assert!(!normal_dependencies(name).iter().any(|d| d == "jni"), "{name} depends on jni");
    }
}

/// A test's crate must not become a part of what is shipped.
#[test]
fn no_crate_depends_on_those_that_are_for_tests() {
    let forbidden = [
        "mpjdev-fuzz",
        "mpjdev-sim",
        "mpjdev-testing",
        "mpjdev-unet",
        "mpjdev-baseline",
        "mpjdev-bench",
        "mpjdev-tests",
        "proptest",
        "loom",
        "divan",
    ];
    for name in OURS {
        let found: Vec<_> =
            normal_dependencies(name).into_iter().filter(|d| forbidden.contains(&d.as_str())).collect();
        none(found, name);
    }
}

#[test]
fn every_member_takes_the_workspaces_lints() {
    for member in members() {
        let manifest = read(&root().join(&member).join("Cargo.toml"));
        assert!(
            manifest.contains("[lints]\nworkspace = true"),
            "{member} does not take the workspace's lints"
        );
    }
}

/// Members of the workspace by their folders.
fn members() -> Vec<String> {
    let manifest = read(&root().join("Cargo.toml"));
    let members =
        manifest.lines().find_map(|line| line.strip_prefix("members = [")).expect("members on one line");
    members.trim_end_matches(']').split(',').map(|m| m.trim().trim_matches('"').to_owned()).collect()
}

/// Names among these dependencies that no code uses. A crate is named in code with `_` for `-`.
fn unused<'a>(dependencies: &'a [String], code: &[&str]) -> Vec<&'a String> {
    let is_used = |name: &str| code.iter().any(|code| has_word(code, &name.replace('-', "_")));
    dependencies.iter().filter(|name| !is_used(name)).collect()
}

#[test]
fn every_dependency_of_the_workspace_is_one_of_a_member() {
    let picked: HashSet<String> = members()
        .iter()
        .flat_map(|member| {
            let manifest = read(&root().join(member).join("Cargo.toml"));
            dependencies(&manifest, |section| section.ends_with("dependencies"))
        })
        .collect();
    let all = dependencies(&read(&root().join("Cargo.toml")), |section| section == "workspace.dependencies");
    let findings = all.into_iter().filter(|name| !picked.contains(name));
    let findings = findings.map(|name| format!("Cargo.toml: {name}"));
    none(findings.collect(), "a dependency that no member takes; delete it");
}

#[test]
fn every_dependency_of_a_member_is_named_in_its_code() {
    let members = members();
    let mut findings = Vec::new();
    for member in &members {
        let folder = format!("{member}/");
        let is_other = |path: &str| {
            members.iter().any(|other| other.starts_with(&folder) && path.starts_with(&format!("{other}/")))
        };
        let own = || rust_sources().iter().filter(|s| s.path.starts_with(&folder) && !is_other(&s.path));
        let product: Vec<&str> = own().filter(|s| s.path.contains("/src/")).map(Source::product).collect();
        let all: Vec<&str> = own().map(|source| source.text.as_str()).collect();
        let manifest = read(&root().join(member).join("Cargo.toml"));
        for (is_test, code) in [(false, &product), (true, &all)] {
            let names = dependencies(&manifest, |section| {
                section.ends_with("dependencies") && section.ends_with("dev-dependencies") == is_test
            });
            findings.extend(unused(&names, code).iter().map(|name| format!("{member}/Cargo.toml: {name}")));
        }
    }
    none(findings, "a dependency that no code names; delete it, or make it a dev-dependency");
}

#[test]
fn unused_dependencies_are_found() {
    let names = ["mpjdev-sys", "bytes"].map(str::to_owned);
    assert_eq!(unused(&names, &["use mpjdev_sys::x;", "my_bytes()"]), [&names[1]]);
}

/// A dependency is a decision: the line above its group says why it is there.
#[test]
fn every_dependency_stands_below_a_comment_that_says_why() {
    let manifest = read(&root().join("Cargo.toml"));
    let lines: Vec<&str> = manifest.lines().collect();
    let begin = lines.iter().position(|line| *line == "[workspace.dependencies]").expect("the section");
    let mut said = false;
    let mut findings = Vec::new();
    for line in lines[begin + 1..].iter().take_while(|line| !line.starts_with('[')) {
        match line.trim() {
            "" => said = false,
            comment if comment.starts_with('#') => said = true,
            ours if ours.starts_with("mpjdev-") && ours.contains("path =") => {}
            dependency if !said => findings.push(dependency.to_owned()),
            _ => {}
        }
    }
    none(findings, "a dependency without a reason");
}
