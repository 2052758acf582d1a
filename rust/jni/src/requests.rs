//! Calls about several requests.

use crate::boundary::Env;
use crate::comm::Answer;
use crate::handle;

/// The numbers of sends and receives that the end of a rank has left incomplete.
pub(crate) fn incomplete(_: &mut Env, comm: i64) -> Answer {
    let comm = handle::comm(comm)?;
    let mut incomplete = [0; 2];
    for request in handle::requests_of(&comm) {
        let is_receive = request.destination.is_some();
        if is_receive || !matches!(request.comm.test(request.id), Ok(Some(_))) {
            incomplete[usize::from(is_receive)] += 1;
        }
    }
    let [sends, receives] = incomplete;
    Ok(sends << 32 | receives)
}
