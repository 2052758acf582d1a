//! Settings of a client, and the data of its labels (IMPI 5.5).

use std::ops::RangeInclusive;

use bytes::{BufMut, Bytes};
use thiserror::Error;

use super::Auth;
use super::layout::{CLIENTS_MAX, Command, HOSTS_MAX, Label, PROCS_MAX, TAG_UB_MAX, TAG_UB_MIN, Version};
use crate::impi::{Dialect, Proc};

/// The settings of a client.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Its rank among the clients of the job, from 0.
    pub rank: u32,
    /// The dialect of all clients of the job.
    pub dialect: Dialect,
    /// The methods of authentication; not empty.
    pub auth: Auth,
    /// Its versions of IMPI, ascending; the first is 0.0.
    pub versions: Vec<Version>,
    /// Its hosts, at least one, with at least one process among them. Their ports already accept connections.
    pub hosts: Vec<HostSettings>,
    /// Octets of user data that it accepts in a packet, at least 1, without the header. In the draft too:
    /// there "a header followed by up to IMPI_Pk_maxlen bytes of packed user data" is a packet (IMPI 15, the
    /// draft's Message Packets).
    pub datalen: u32,
    /// Its largest tag, 32767 to 2147483647.
    pub tag_ub: u32,
    /// Octets from which collective operations are "long", at most 2147483647; `None` is the default.
    pub coll_xsize: Option<u32>,
    /// Masters up to which collective operations are linear, at most 2147483647; `None` is the default.
    pub coll_maxlinear: Option<u32>,
    /// Sends all labels at once. LAM sends each after the reply to the one before (IMPI 5.4).
    pub pipelines: bool,
}

/// One host of a client.
#[derive(Clone, Debug)]
pub struct HostSettings {
    /// Its listening address, in the form of IPv6 (IMPI 2.1).
    pub address: [u8; 16],
    /// Its listening port.
    pub port: u16,
    /// Its processes, in the order of their ranks.
    pub procs: Vec<Proc>,
    /// Packets after which it acknowledges them, at least 1.
    pub ackmark: u32,
    /// Packets that may be in flight to it without an acknowledgement, at least ackmark.
    pub hiwater: u32,
}

/// Invalid settings of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum SettingsError {
    /// There is no method of authentication to offer.
    #[error("no method of authentication is enabled: set IMPI_AUTH_KEY, or IMPI_AUTH_NONE")]
    NoAuth,
    /// The versions do not begin with 0.0, or do not ascend.
    #[error("versions of IMPI must ascend from 0.0")]
    Versions,
    /// A number is not within its limits.
    #[error("{field} is {value}, it must be {min} to {max}")]
    OutOfRange {
        /// The number's field.
        field: &'static str,
        /// Its value.
        value: u64,
        /// The least it may be.
        min: u64,
        /// The most it may be.
        max: u64,
    },
    /// The ackmark of a host exceeds its hiwater.
    #[error("host {host} has an ackmark of {ackmark} and a hiwater of {hiwater}, which must not be less")]
    Marks {
        /// The index of the host at its client.
        host: usize,
        /// Its ackmark.
        ackmark: u32,
        /// Its hiwater.
        hiwater: u32,
    },
    /// A process id does not fit the draft's Uint4.
    #[error("process id {pid} does not fit into the draft's 4 octets")]
    DraftPid {
        /// The process id.
        pid: i64,
    },
    /// Two processes have the same host id and process id.
    #[error("two processes have the process id {pid} on one host")]
    SameProc {
        /// The process id.
        pid: i64,
    },
}

impl Settings {
    /// Checks all that can be checked without the other clients.
    pub(super) fn check(&self) -> Result<(), SettingsError> {
        if self.auth.is_empty() {
            return Err(SettingsError::NoAuth);
        }
        if self.versions.first() != Some(&Version::V0_0) || !self.versions.is_sorted_by(|a, b| a < b) {
            return Err(SettingsError::Versions);
        }
        let int4 = u64::from(TAG_UB_MAX);
        within("the rank", self.rank, 0..=u64::from(CLIENTS_MAX - 1))?;
        within("the number of hosts", self.hosts.len(), 1..=u64::from(HOSTS_MAX))?;
        within("the number of processes", self.procs().count(), 1..=u64::from(PROCS_MAX))?;
        within("DATALEN", self.datalen, 1..=u64::from(u32::MAX))?;
        within("TAGUB", self.tag_ub, u64::from(TAG_UB_MIN)..=int4)?;
        within("COLL_XSIZE", self.coll_xsize.unwrap_or(0), 0..=int4)?;
        within("COLL_MAXLINEAR", self.coll_maxlinear.unwrap_or(0), 0..=int4)?;
        for (host, &HostSettings { ackmark, hiwater, .. }) in self.hosts.iter().enumerate() {
            if ackmark == 0 || ackmark > hiwater {
                return Err(SettingsError::Marks { host, ackmark, hiwater });
            }
        }
        self.check_procs()
    }

    fn check_procs(&self) -> Result<(), SettingsError> {
        let mut sorted: Vec<Proc> = self.procs().collect();
        sorted.sort_unstable();
        if let Some(same) = sorted.windows(2).find(|two| two[0] == two[1]) {
            return Err(SettingsError::SameProc { pid: same[0].pid });
        }
        let is_draft = self.dialect == Dialect::Draft;
        match sorted.iter().find(|proc| is_draft && u32::try_from(proc.pid).is_err()) {
            Some(proc) => Err(SettingsError::DraftPid { pid: proc.pid }),
            None => Ok(()),
        }
    }

    fn procs(&self) -> impl Iterator<Item = Proc> {
        self.hosts.iter().flat_map(|host| host.procs.iter().copied())
    }

    /// The payload of AUTH (IMPI 5.2): the mask, or in the draft the key, which is 0 for a client without
    /// one.
    pub(super) fn auth_payload(&self) -> Bytes {
        match self.dialect {
            Dialect::Final => Bytes::copy_from_slice(&self.auth.mask().to_be_bytes()),
            Dialect::Draft => self.key_payload(),
        }
    }

    /// IMPI_Auth_key.
    pub(super) fn key_payload(&self) -> Bytes {
        Bytes::copy_from_slice(&self.auth.key.map_or(0, |key| key.0).to_be_bytes())
    }

    /// The COLL message of one of [`Label::ALL`].
    pub(super) fn coll(&self, label: Label) -> Bytes {
        super::layout::Cmd::emit(Command::Coll, &[&label.0.to_be_bytes(), &self.data(label)])
    }

    fn data(&self, label: Label) -> Vec<u8> {
        let mut data = Vec::new();
        let each_host = |data: &mut Vec<u8>, number: fn(&HostSettings) -> u32| {
            self.hosts.iter().for_each(|host| data.put_u32(number(host)));
        };
        // `check` has found that the numbers fit.
        match label {
            Label::C_VERSION => self.versions.iter().for_each(|version| data.put_slice(&version.emit())),
            Label::C_NHOSTS => data.put_u32(self.hosts.len() as u32),
            Label::C_NPROCS => data.put_u32(self.procs().count() as u32),
            Label::C_DATALEN => data.put_u32(self.datalen),
            Label::C_TAGUB => data.put_u32(self.tag_ub),
            Label::C_COLL_XSIZE => data.put_u32(self.coll_xsize.unwrap_or(u32::MAX)),
            Label::C_COLL_MAXLINEAR => data.put_u32(self.coll_maxlinear.unwrap_or(u32::MAX)),
            Label::H_IPV6 => self.hosts.iter().for_each(|host| data.put_slice(&host.address)),
            Label::H_PORT => each_host(&mut data, |host| host.port.into()),
            Label::H_NPROCS => each_host(&mut data, |host| host.procs.len() as u32),
            Label::H_ACKMARK => each_host(&mut data, |host| host.ackmark),
            Label::H_HIWATER => each_host(&mut data, |host| host.hiwater),
            Label::P_IPV6 => self.procs().for_each(|proc| data.put_slice(&proc.host_id)),
            Label::P_PID => match self.dialect {
                Dialect::Final => self.procs().for_each(|proc| data.put_i64(proc.pid)),
                Dialect::Draft => self.procs().for_each(|proc| data.put_u32(proc.pid as u32)),
            },
            _ => {}
        }
        data
    }
}

fn within(
    field: &'static str,
    value: impl TryInto<u64>,
    range: RangeInclusive<u64>,
) -> Result<(), SettingsError> {
    let value = value.try_into().unwrap_or(u64::MAX);
    if range.contains(&value) {
        return Ok(());
    }
    Err(SettingsError::OutOfRange { field, value, min: *range.start(), max: *range.end() })
}
