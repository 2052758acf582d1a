//! Text captures, read as they are.

use mpjdev_cli::inspect::impi::{Agreed, Part, Question};
use mpjdev_proto::impi::Dialect;
use serde_json::{Value, json};

use crate::support::{TEXT, ask, complaints, items, json, read, tell, text};

/// Proves the layout that a person sees, in whole.
#[test]
fn a_capture_looks_like_this() {
    assert_eq!(
        text(read("impi-captures/long.txt").as_bytes(), ask(Dialect::Final)),
        "\
packets     final dialect
  1   at 0, line 7        host 1 -> host 0    handshake number=1  # host 1 has connected
  2   at 0, line 8        host 0 -> host 1    DataSync  127.0.0.2/3646 -> 127.0.0.3/3651 srqid=1 lsrank=0 tag=31 cid=0 len=65536 msglen=150000  # first packet of a long message of 150000 octets  | 00 01 02 03 04 05 06 07 08 09 0a 0b 0c 0d 0e 0f ... | ................ ...
  3   at 4, line 17       host 1 -> host 0    SyncAck   127.0.0.3/3651 -> 127.0.0.2/3646 srqid=1 drqid=1  # matched: the message of packet 2; its rest is to name drqid 1
  4   at 65664, line 25   host 0 -> host 1    Data      127.0.0.2/3646 -> 127.0.0.3/3651 srqid=1 drqid=1 lsrank=0 tag=31 cid=0 len=65536 msglen=150000  # octets 65536 to 131071 of the message of packet 2  | 19 1a 1b 1c 1d 1e 1f 20 21 22 23 24 25 26 27 28 ... | ....... !\"#$%&'( ...
  5   at 131328, line 34  host 0 -> host 1    Data      127.0.0.2/3646 -> 127.0.0.3/3651 srqid=1 drqid=1 lsrank=0 tag=31 cid=0 len=18928 msglen=150000  # octets 131072 to 149999 of the message of packet 2, which is complete  | 32 33 34 35 36 37 38 39 3a 3b 3c 3d 3e 3f 40 41 ... | 23456789:;<=>?@A ...
  6   at 132, line 43     host 1 -> host 0    Data      127.0.0.3/3651 -> 127.0.0.2/3646 lsrank=1 tag=110 cid=1 len=0 msglen=0  # barrier: empty message
  7   at 150384, line 51  host 0 -> host 1    Data      127.0.0.2/3646 -> 127.0.0.3/3651 lsrank=0 tag=110 cid=1 len=0 msglen=0  # barrier: empty message
  8   at 150512, line 59  host 0 -> host 1    Fini  # its host says nothing more
  9   at 260, line 67     host 1 -> host 0    Fini  # its host says nothing more
  10  at 388, line 75     host 1 -> host 0    end  # end of stream
  11  at 150640, line 76  host 0 -> host 1    end  # end of stream
in all      8 packets, 0 warnings
"
    );
}

/// Proves that a capture of start-up and packets is told whole, and that packets mean what start-up has agreed on.
#[test]
fn start_up_says_what_packets_mean() {
    let told = json(read("impi-captures/flow.txt").as_bytes(), ask(Dialect::Final));
    assert_eq!(complaints(&told), [""; 0]);
    assert_eq!((&told["commands"], &told["packets"]), (&json!(70), &json!(30)));
    let acknowledgements = items(&told).into_iter().filter(|item| item["type"] == "ProtoAck");
    let meanings: Vec<&Value> = acknowledgements.map(|item| &item["meaning"]).collect();
    assert_eq!(meanings, [&json!("acknowledges 3 packets"); 6]);
    let shown = text(read("impi-captures/hello.txt").as_bytes(), ask(Dialect::Final));
    for line in [
        "startup     final dialect\n",
        "client 0 -> server  AUTH      auth_mask={none}  # methods that the client has\n",
        "server -> client 0  method    which=0 len=0  # the server chooses the method \"none\"\n",
        "client 1 -> server  IMPI      rank=1  # this is client 1\n",
        "server -> client 1  IMPI      size=2  # all clients have joined\n",
        "client 0 -> server  COLL      C_DATALEN 65536  # most octets of data in a packet\n",
        "COLL      C_COLL_XSIZE client_mask={0, 1} client 0: -1; client 1: -1  # long from 1024 octets on\n",
        "COLL      H_IPV6 client_mask={0, 1} client 0: 127.0.0.2; client 1: 127.0.0.3  # addresses of hosts\n",
        "            job: 2 clients, 2 hosts, 2 ranks in MPI_COMM_WORLD; maxdatalen 65536, ackmark 10, hiwater 20, \
         largest tag 2147483647, xsize 1024, maxlinear 4\n",
        "client 1 -> server  end  # the connection is closed\n",
        "packets     final dialect\n",
        "in all      70 commands, 4 packets, 0 warnings\n",
    ] {
        assert!(shown.contains(line), "{line}is not in\n{shown}");
    }
}

/// Proves that a packet is told alike from a capture and from hex text of the same octets.
#[test]
fn captures_and_vectors_of_one_recording_agree() {
    for name in ["hello", "long", "flow", "collective"] {
        let captured = json(read(&format!("impi-captures/{name}.txt")).as_bytes(), packets_only());
        let vector = json(read(&format!("impi-{name}.hex")).as_bytes(), ask(Dialect::Final));
        let essence = |told: &Value| -> Vec<[Value; 5]> {
            let keys = ["type", "from", "to", "fields", "ignored"];
            items(told).into_iter().map(|item| keys.map(|key| item[key].clone())).collect()
        };
        assert_eq!(essence(&captured), essence(&vector), "{name}");
    }
}

fn packets_only() -> Question {
    Question { part: Some(Part::Packets), ..ask(Dialect::Final) }
}

/// Proves that a part of a capture can be asked for, and that the other part is still heard.
#[test]
fn one_part_of_a_capture_can_be_asked_for() {
    let told = json(read("impi-captures/flow.txt").as_bytes(), packets_only());
    assert_eq!((&told["commands"], &told["packets"]), (&json!(0), &json!(30)));
    assert!(items(&told).iter().any(|item| item["meaning"] == "acknowledges 3 packets"));
    let question = Question { part: Some(Part::Startup), ..ask(Dialect::Final) };
    let told = json(read("impi-captures/flow.txt").as_bytes(), question);
    assert_eq!((&told["commands"], &told["packets"]), (&json!(70), &json!(0)));
}

/// The lines of a capture without the block of one packet.
fn without_packet(capture: &str, what: &str, nth: usize) -> String {
    let mut seen = 0;
    let mut skips = false;
    let mut kept = String::new();
    for line in capture.lines() {
        if !line.starts_with(' ') {
            seen += usize::from(line.contains(what));
            skips = line.contains(what) && seen == nth;
        }
        if !skips {
            kept.push_str(line);
            kept.push('\n');
        }
    }
    kept
}

/// Proves that a capture in which something is missing is held against its sides: a ProtoAck, a packet, Fini, a number.
#[test]
fn what_a_capture_lacks_is_noticed() {
    let flow = read("impi-captures/flow.txt");
    let complaint = |capture: &str| complaints(&json(capture.as_bytes(), ask(Dialect::Final)));
    let first = complaint(&without_packet(&flow, "PROTOACK pk_len", 1));
    assert_eq!(first[0], "6 packets without a ProtoAck, hiwater is 5");
    let mut lacking = flow.clone();
    for _ in 0..3 {
        lacking = without_packet(&lacking, "DATA pk_len=4", 1);
    }
    let last = complaint(&lacking);
    assert_eq!(last, ["ProtoAck for 3 packets, 2 not acknowledged"]);
    let long = read("impi-captures/long.txt");
    assert_eq!(
        complaint(&without_packet(&long, "SYNCACK pk_len", 1)),
        ["drqid 1 names no message that goes on", "drqid 1 names no message that goes on"]
    );
    assert_eq!(complaint(&without_packet(&long, "FINI pk_len", 2)), ["without Fini: host 1 has died"]);
    assert_eq!(
        complaint(&without_packet(&flow, "client1 -> server    8  46494e49", 1)),
        ["without FINI: the client has failed"]
    );
    let port = without_packet(&flow, "client0 -> server   16  434f4c4c 00000008 00002100", 1);
    assert_eq!(complaint(&port)[0], "before this client has sent it");
    let other = flow.replace(
        "server -> client1   24  434f4c4c 00000010 00002300 00000003 0000000a 00000003",
        "server -> client1   24  434f4c4c 00000010 00002300 00000003 0000000a 00000004",
    );
    assert_eq!(complaint(&other), ["another client was told something else"]);
}

/// Proves that without start-up the marks can be given, and are not made up.
#[test]
fn marks_may_be_given() {
    let packets = read("impi-many.hex");
    let shown = text(packets.as_bytes(), ask(Dialect::Final));
    assert!(
        shown.contains("# acknowledges ackmark packets\n") && !shown.contains("            ! "),
        "{shown}"
    );
    let agreed = Agreed { ackmark: Some(10), hiwater: Some(20), maxdatalen: Some(3), tag_ub: None };
    let shown = text(packets.as_bytes(), Question { agreed, ..ask(Dialect::Final) });
    assert!(shown.contains("# acknowledges 10 packets\n"), "{shown}");
    assert_eq!(shown.matches("! len 4 is above maxdatalen, 3\n").count(), 45, "{shown}");
    let agreed = Agreed { ackmark: Some(10), hiwater: Some(9), ..Agreed::default() };
    let shown = text(packets.as_bytes(), Question { agreed, ..ask(Dialect::Final) });
    assert!(shown.contains("! 10 packets without a ProtoAck, hiwater is 9\n"), "{shown}");
}

/// Proves that lines that are none are refused with their number, behind what came before them.
#[test]
fn lines_that_make_no_sense_are_refused_with_their_number() {
    let refused = |capture: &str| {
        let (shown, result) = tell(capture.as_bytes(), ask(Dialect::Final), TEXT);
        (shown, result.expect_err("refused"))
    };
    let said = "client0 -> server   12  41555448 00000004 00000001\n";
    for (line, why) in [
        ("hello", "line 2: not a line of a capture"),
        ("client0 -> server 9  41555448", "line 2: the number of octets is not the one in front of them"),
        ("client0 -> server 4  4155544x", "line 2: not hexadecimal digits, two an octet"),
        ("    008 src  00", "line 2: octets of a header that do not follow those before them"),
        ("    128 data  00", "line 2: data that do not follow a header"),
    ] {
        let (shown, error) = refused(&format!("{said}{line}\n"));
        assert_eq!(error, why);
        assert!(
            shown.contains("client 0 -> server  AUTH") && shown.ends_with("1 command, 0 warnings\n"),
            "{shown}"
        );
        let told = json(format!("{said}{line}\n").as_bytes(), ask(Dialect::Final));
        assert_eq!((&told["error"], &told["commands"]), (&json!(why), &json!(1)));
    }
    let (shown, error) = refused("00 01 zz\n");
    assert_eq!(shown, "");
    assert!(error.starts_with("line 1, column 7: 'z' is not a hexadecimal digit"), "{error}");
}

/// Proves that a packet whose rows are cut is damaged, and that those behind it are not.
#[test]
fn a_cut_packet_does_not_harm_the_next() {
    let hello = read("impi-hello.hex");
    assert!(hello.contains("# host 1 to host 0: Data"));
    let capture = read("impi-captures/hello.txt");
    let at = capture.find("    104 cnt,dty,rsv").expect("the last row of a header");
    let end = at + capture[at..].find('\n').expect("a line end");
    let cut = format!("{}{}", &capture[..at], &capture[end + 1..]);
    let shown = text(cut.as_bytes(), ask(Dialect::Final));
    assert!(
        shown.contains("damaged     at 4, line 83, host 1 -> host 0: 104 octets of a header, 128 needed\n"),
        "{shown}"
    );
    assert!(shown.contains("70 commands, 3 packets, 0 warnings\n"), "{shown}");
}
