//! Calls about several requests: their completion, and those that a rank has left.

use mpjdev_engine::{Comm, DeviceError, Done};
use mpjdev_profile::Call;

use crate::array::Array;
use crate::boundary::{Env, ObjectArray, put_exception};
use crate::comm::{self, Answer, PENDING};
use crate::direct;
use crate::error::{Failure, Fault, reserved, zeroed};
use crate::handle::{self, Destination, Request};

/// A request has failed: its exception is in the array of objects.
const FAILED: i64 = -3;
/// All requests, or none.
const ALL: i32 = 0;
/// The first one that is done.
const ANY: i32 = 1;
/// Those that are done.
const SOME: i32 = 2;

/// The constants that Java has as well.
pub(crate) const CONSTANTS: [(&str, i64); 4] =
    [("FAILED", FAILED), ("ALL", ALL as i64), ("ANY", ANY as i64), ("SOME", SOME as i64)];

/// The call of the profile.
pub(crate) fn call(how: i32, blocking: bool) -> Call {
    match (how, blocking) {
        (ALL, true) => Call::Waitall,
        (ALL, false) => Call::Testall,
        (SOME, true) => Call::Waitsome,
        (SOME, false) => Call::Testsome,
        (_, true) => Call::Waitany,
        (_, false) => Call::Testany,
    }
}

/// The requests of a call that are not zero.
struct Batch {
    /// Index, handle and request.
    active: Vec<(usize, i64, Request)>,
    /// Envelope and details of each element of the call.
    results: Vec<i64>,
    completed: i32,
}

/// Completes requests of one rank. Zeroes are skipped. Returns the number of completed requests, and stores
/// envelope and details of each request.
pub(crate) fn complete(
    env: &mut Env,
    requests: Array,
    arrays: ObjectArray,
    results: Array,
    how: i32,
    blocking: bool,
) -> Answer<i32> {
    let mut handles = zeroed(requests.len())?;
    requests.get_longs(env, &mut handles);
    if arrays.len() < handles.len() || results.len() / 2 < handles.len() {
        let why = "there are fewer arrays or results than requests";
        return Err(Fault::Unusable { what: "array", why }.into());
    }
    let mut batch = Batch::new(&handles)?;
    let Some((_, _, first)) = batch.active.first() else { return Ok(0) };
    let comm = first.comm.clone();
    if batch.active.iter().any(|(_, _, r)| !r.comm.is_of_same_rank(&comm)) {
        return Err(DeviceError::MixedRanks.into());
    }
    let completed = match how {
        ALL if blocking => batch.wait_all(env, &arrays),
        ALL => batch.test_all(env, &arrays),
        _ => batch.complete_some(env, &arrays, &comm, how == SOME, blocking),
    };
    // Those that were completed before a failure of the wait too.
    results.put_longs(env, &batch.results);
    completed.map(|()| batch.completed)
}

impl Batch {
    fn new(handles: &[i64]) -> Answer<Batch> {
        let mut active = reserved(handles.iter().filter(|handle| **handle != 0).count())?;
        for (at, &handle) in handles.iter().enumerate().filter(|(_, handle)| **handle != 0) {
            active.push((at, handle, handle::request(handle)?));
        }
        let mut results = zeroed(2 * handles.len())?;
        results.fill(PENDING);
        Ok(Batch { active, results, completed: 0 })
    }

    fn wait_all(&mut self, env: &mut Env, arrays: &ObjectArray) -> Answer<()> {
        for next in 0..self.active.len() {
            let (_, _, request) = &self.active[next];
            match request.comm.wait(request.id, None, &mut || env.may_wait()) {
                Err(error @ (DeviceError::TimedOut { .. } | DeviceError::Interrupted)) => {
                    return Err(error.into());
                }
                result => self.conclude(env, arrays, next, result),
            }
        }
        Ok(())
    }

    fn test_all(&mut self, env: &mut Env, arrays: &ObjectArray) -> Answer<()> {
        let is_done = |(_, _, request): &(usize, i64, Request)| request.comm.is_done(request.id);
        if self.active.iter().all(is_done) {
            (0..self.active.len()).for_each(|next| self.conclude_done(env, arrays, next));
        }
        Ok(())
    }

    /// Completes the first request that is done, or all that are.
    fn complete_some(
        &mut self,
        env: &mut Env,
        arrays: &ObjectArray,
        comm: &Comm,
        all: bool,
        blocking: bool,
    ) -> Answer<()> {
        let mut first = 0;
        if blocking {
            let mut ids = reserved(self.active.len())?;
            ids.extend(self.active.iter().map(|(_, _, request)| request.id));
            first = comm.wait_any(&ids, None, &mut || env.may_wait())?;
        }
        for next in first..self.active.len() {
            let (_, _, request) = &self.active[next];
            if request.comm.is_done(request.id) {
                self.conclude_done(env, arrays, next);
                if !all {
                    break;
                }
            }
        }
        Ok(())
    }

    /// Completes a request that was seen done.
    fn conclude_done(&mut self, env: &mut Env, arrays: &ObjectArray, next: usize) {
        let (_, _, request) = &self.active[next];
        if let Some(result) = request.comm.test(request.id).transpose() {
            self.conclude(env, arrays, next, result);
        }
    }

    fn conclude(
        &mut self,
        env: &mut Env,
        arrays: &ObjectArray,
        next: usize,
        result: Result<Done, DeviceError>,
    ) {
        let (at, handle, request) = &self.active[next];
        let result = match take(env, arrays, (*at, *handle, request), result) {
            Ok(result) => result,
            Err(failure) => {
                put_exception(env, arrays, *at, &failure);
                (FAILED, 0)
            }
        };
        (self.results[2 * at], self.results[2 * at + 1]) = result;
        self.completed += 1;
    }
}

/// The result of a request, whose message goes to its array or its buffer.
fn take(
    env: &mut Env,
    arrays: &ObjectArray,
    (at, handle, request): (usize, i64, &Request),
    result: Result<Done, DeviceError>,
) -> Answer<(i64, i64)> {
    let Some(Destination::Array { element, len, selection }) = &request.destination else {
        return comm::conclude(handle, request, result);
    };
    let taken = Array::with_element(env, arrays, at, (*element, *len), |env, array| {
        direct::conclude_selected(env, handle, (array, selection), result)
    });
    taken.unwrap_or_else(|| {
        handle::drop_request(handle);
        Err(wrong_array())
    })
}

#[cold]
fn wrong_array() -> Failure {
    Fault::WrongKind { what: "request", why: "it does not receive into this array" }.into()
}

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
