//! Tests of text captures in the recorder's form.

use mpjdev_cli::inspect::impi::{Options, Part, Terms};
use mpjdev_proto::impi::Dialect;
use serde_json::{Value, json};

use crate::support::{TEXT, complaints, items, json, read, shown, speaking, text};

/// Proves the whole layout of the text.
#[test]
fn text_of_a_capture_has_one_line_a_packet() {
    assert_eq!(
        text(read("impi-captures/long.txt").as_bytes(), speaking(Dialect::Final)),
        "\
packets     final dialect
  1   at 0, line 7        host 1 -> host 0    handshake number=1  # host 1 has connected
  2   at 0, line 8        host 0 -> host 1    DataSync  127.0.0.2/3646 -> 127.0.0.3/3651 srqid=1 lsrank=0 tag=31 cid=0 len=65536 msglen=150000  # first packet of a long message of 150000 octets  | 00 01 02 03 04 05 06 07 08 09 0a 0b 0c 0d 0e 0f ... | ................ ...
  3   at 4, line 17       host 1 -> host 0    SyncAck   127.0.0.3/3651 -> 127.0.0.2/3646 srqid=1 drqid=1  # srqid 1 is matched; the rest of a long message names drqid 1
  4   at 65664, line 25   host 0 -> host 1    Data      127.0.0.2/3646 -> 127.0.0.3/3651 srqid=1 drqid=1 lsrank=0 tag=31 cid=0 len=65536 msglen=150000  # 65536 octets of a long message of 150000 octets  | 19 1a 1b 1c 1d 1e 1f 20 21 22 23 24 25 26 27 28 ... | ....... !\"#$%&'( ...
  5   at 131328, line 34  host 0 -> host 1    Data      127.0.0.2/3646 -> 127.0.0.3/3651 srqid=1 drqid=1 lsrank=0 tag=31 cid=0 len=18928 msglen=150000  # 18928 octets of a long message of 150000 octets  | 32 33 34 35 36 37 38 39 3a 3b 3c 3d 3e 3f 40 41 ... | 23456789:;<=>?@A ...
  6   at 132, line 43     host 1 -> host 0    Data      127.0.0.3/3651 -> 127.0.0.2/3646 lsrank=1 tag=110 cid=1 len=0 msglen=0  # barrier: empty message
  7   at 150384, line 51  host 0 -> host 1    Data      127.0.0.2/3646 -> 127.0.0.3/3651 lsrank=0 tag=110 cid=1 len=0 msglen=0  # barrier: empty message
  8   at 150512, line 59  host 0 -> host 1    Fini  # the host sends no more data
  9   at 260, line 67     host 1 -> host 0    Fini  # the host sends no more data
  10  at 388, line 75     host 1 -> host 0    end  # end of stream
  11  at 150640, line 76  host 0 -> host 1    end  # end of stream
in all      8 packets, 0 warnings
"
    );
}

/// Proves that a capture of start-up and packets is shown whole, and that start-up states the terms of the
/// packets.
#[test]
fn start_up_states_the_terms_of_the_packets() {
    let found = json(read("impi-captures/flow.txt").as_bytes(), speaking(Dialect::Final));
    assert_eq!(complaints(&found), [""; 0]);
    assert_eq!((&found["commands"], &found["packets"]), (&json!(70), &json!(30)));
    let acknowledgements = items(&found).into_iter().filter(|item| item["type"] == "ProtoAck");
    let meanings: Vec<&Value> = acknowledgements.map(|item| &item["meaning"]).collect();
    assert_eq!(meanings, [&json!("acknowledges 3 packets"); 6]);
    let shown = text(read("impi-captures/hello.txt").as_bytes(), speaking(Dialect::Final));
    for line in [
        "startup     final dialect\n",
        "client 0 -> server  AUTH      auth_mask={none}  # methods that the client has\n",
        "server -> client 0  method    which=0 len=0  # the server chooses the method \"none\"\n",
        "client 1 -> server  IMPI      rank=1  # this is client 1\n",
        "server -> client 1  IMPI      size=2  # all clients have joined\n",
        "client 0 -> server  COLL      C_DATALEN 65536  # most octets of data in a packet\n",
        "COLL      C_COLL_XSIZE client_mask={0, 1} client 0: -1; client 1: -1  # long from 1024 octets\n",
        "COLL      H_IPV6 client_mask={0, 1} client 0: 127.0.0.2; client 1: 127.0.0.3  # addresses of hosts\n",
        "COLL      H_HIWATER client_mask={0, 1} client 0: 20; client 1: 20  # at most 20 packets without a ProtoAck\n",
        "client 1 -> server  end  # the connection is closed\n",
        "packets     final dialect\n",
        "in all      70 commands, 4 packets, 0 warnings\n",
    ] {
        assert!(shown.contains(line), "{line}is not in\n{shown}");
    }
}

/// Proves that a packet is shown alike from a capture and from hex text of the same octets.
#[test]
fn captures_and_vectors_of_one_recording_agree() {
    for name in ["hello", "long", "flow", "collective"] {
        let captured = json(read(&format!("impi-captures/{name}.txt")).as_bytes(), packets_only());
        let vector = json(read(&format!("impi-{name}.hex")).as_bytes(), speaking(Dialect::Final));
        let essence = |found: &Value| -> Vec<[Value; 5]> {
            let keys = ["type", "from", "to", "fields", "ignored"];
            items(found).into_iter().map(|item| keys.map(|key| item[key].clone())).collect()
        };
        assert_eq!(essence(&captured), essence(&vector), "{name}");
    }
}

fn packets_only() -> Options {
    Options { part: Some(Part::Packets), ..speaking(Dialect::Final) }
}

/// Proves that one part of a capture can be shown, and that the terms of the other part still count.
#[test]
fn one_part_of_a_capture_can_be_shown() {
    let found = json(read("impi-captures/flow.txt").as_bytes(), packets_only());
    assert_eq!((&found["commands"], &found["packets"]), (&json!(0), &json!(30)));
    assert!(items(&found).iter().any(|item| item["meaning"] == "acknowledges 3 packets"));
    let options = Options { part: Some(Part::Startup), ..speaking(Dialect::Final) };
    let found = json(read("impi-captures/flow.txt").as_bytes(), options);
    assert_eq!((&found["commands"], &found["packets"]), (&json!(70), &json!(0)));
}

/// Proves that options set terms and precede those of start-up, and that there are none without either.
#[test]
fn terms_of_options_are_used() {
    let packets = read("impi-many.hex");
    let shown = text(packets.as_bytes(), speaking(Dialect::Final));
    assert!(shown.contains("# acknowledges ackmark packets\n"), "{shown}");
    assert!(!shown.contains("            ! "), "{shown}");
    let terms = Terms { ackmark: Some(10), maxdatalen: Some(3), tag_ub: None };
    let options = Options { terms, ..speaking(Dialect::Final) };
    let shown = text(packets.as_bytes(), options);
    assert!(shown.contains("# acknowledges 10 packets\n"), "{shown}");
    assert_eq!(shown.matches("! len 4 is above maxdatalen, 3\n").count(), 45, "{shown}");
    let shown = text(read("impi-captures/flow.txt").as_bytes(), options);
    assert_eq!(shown.matches("# acknowledges 10 packets\n").count(), 6, "{shown}");
    let terms = Terms { tag_ub: Some(5), ..Terms::default() };
    let shown =
        text(read("impi-captures/long.txt").as_bytes(), Options { terms, ..speaking(Dialect::Final) });
    assert_eq!(shown.matches("! tag 31 is above the largest of the job, 5\n").count(), 3, "{shown}");
}

/// Proves that a damaged line is refused with its number, after the output for the lines before it.
#[test]
fn damaged_lines_are_refused_with_their_number() {
    let refused = |capture: &str| {
        let (shown, result) = shown(capture.as_bytes(), speaking(Dialect::Final), TEXT);
        (shown, result.expect_err("refused"))
    };
    let sound = "client0 -> server   12  41555448 00000004 00000001\n";
    for (line, why) in [
        ("hello", "line 2: not a line of a capture"),
        ("client0 -> server 9  41555448", "line 2: the number of octets is not the one in front of them"),
        ("client0 -> server 4  4155544x", "line 2: not hexadecimal digits, two an octet"),
        ("client0 -> server 4  4155544", "line 2: not hexadecimal digits, two an octet"),
        ("    008 src  00", "line 2: octets of a header that do not follow those before them"),
        ("    128 data  00", "line 2: data that do not follow a header"),
    ] {
        let (shown, error) = refused(&format!("{sound}{line}\n"));
        assert_eq!(error, why);
        assert!(
            shown.contains("client 0 -> server  AUTH") && shown.ends_with("1 command, 0 warnings\n"),
            "{shown}"
        );
        let found = json(format!("{sound}{line}\n").as_bytes(), speaking(Dialect::Final));
        assert_eq!((&found["error"], &found["commands"]), (&json!(why), &json!(1)));
    }
    let (shown, error) = refused("00 01 zz\n");
    assert_eq!(shown, "");
    assert!(error.starts_with("line 1, column 7: 'z' is not a hexadecimal digit"), "{error}");
}

/// Proves that a packet with missing rows is damaged, and that the packets after it are not.
#[test]
fn truncated_packet_does_not_affect_the_next() {
    let capture = read("impi-captures/hello.txt");
    let at = capture.find("    104 cnt,dty,rsv").expect("the last row of a header");
    let end = at + capture[at..].find('\n').expect("a line end");
    let cut = format!("{}{}", &capture[..at], &capture[end + 1..]);
    let shown = text(cut.as_bytes(), speaking(Dialect::Final));
    assert!(
        shown.contains("damaged     at 4, line 83, host 1 -> host 0: 104 octets of a header, 128 needed\n"),
        "{shown}"
    );
    assert!(shown.contains("70 commands, 3 packets, 0 warnings\n"), "{shown}");
}

/// Proves the warning for data whose length differs from that in the header.
#[test]
fn data_of_a_wrong_length_are_warned_of() {
    let capture = read("impi-captures/long.txt").replace("65536 bytes, first", "65535 bytes, first");
    let found = json(capture.as_bytes(), speaking(Dialect::Final));
    assert_eq!(complaints(&found), ["len is 65536, the recording has 65535 octets of data"; 2]);
}
