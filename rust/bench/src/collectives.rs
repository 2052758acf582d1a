//! Collective calls of package `mpi` beside C and MPJ Express: contestants that take turns, and figures.
//!
//! Each rank times each call alone, after a barrier that is not timed. The result of a turn is the mean over
//! the ranks of the median over the calls of the turn; that of a job the median over its turns.

pub mod picture;
pub mod targets;
pub mod text;

use crate::BenchError;
use crate::calls::Call;
use crate::contest::{self, Entry, Pace, Stop};
use crate::contestant::{self, Contestant, MPJ_EXPRESS, RunningJob, Tools, Transport};
use crate::figures::{self, Figure, Limit, Quantity};
use crate::mpj_express::MpjExpress;
use crate::outcome::{Compared, Sample, Summary, compare};
use crate::peer::Program;
use crate::protocol::Case;
use crate::report::{self, Absent, Row};
use crate::targets::Outcome;
use targets::{BESIDE_MPJ_EXPRESS, OF_MPJ_EXPRESS, OVER_MPI, OVER_OURS, Target, Value};

/// Arguments of a run.
#[derive(Debug)]
pub struct CollectiveRun<'a> {
    /// Programs of the contestants.
    pub tools: &'a Tools,
    /// Transport of the ranks in Java and in Rust.
    pub transport: Transport,
    /// C program under the installed MPIs.
    pub peers: &'a [Program],
    /// Installation of MPJ Express, or why there is none.
    pub mpj_express: Result<&'a MpjExpress, &'a str>,
    /// Numbers of ranks; empty for those of each row.
    pub ranks: &'a [u32],
    /// Parts of the names of the rows that are measured; empty for all.
    pub rows: &'a [String],
    /// Durations of a measurement.
    pub pace: Pace,
    /// Jobs whose medians the figures are.
    pub jobs: usize,
    /// Flag that ends the run.
    pub stop: &'a Stop,
}

/// Contestants beside the ranks in Java.
#[derive(Clone, Copy, Debug)]
enum Group<'a> {
    /// Ranks in Java and in Rust over a transport of mpjdev, beside C under each MPI.
    Ours,
    /// Ranks over a transport of mpjdev, beside threads of MPJ Express.
    BesideMpjExpress(&'a MpjExpress),
    /// Ranks over a C MPI, beside C under the same MPI.
    Over(&'a Program),
}

/// Role of a contestant in its rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    /// Ranks in Java, which have the limits.
    Java,
    /// C or MPJ Express.
    Peer,
    /// Ranks in Rust, which are only reported.
    Rust,
}

/// Running contestants.
#[derive(Default)]
struct Jobs {
    /// Role of the job at the same index.
    roles: Vec<Role>,
    jobs: Vec<RunningJob>,
}

impl Jobs {
    fn remove(&mut self, name: &str) -> bool {
        let found = self.jobs.iter().position(|job| job.name() == name);
        if let Some(at) = found {
            self.roles.remove(at);
            drop(self.jobs.remove(at));
        }
        found.is_some()
    }
}

impl Group<'_> {
    fn targets(self) -> &'static [Target] {
        match self {
            Group::Ours => OVER_OURS,
            Group::BesideMpjExpress(_) => BESIDE_MPJ_EXPRESS,
            Group::Over(_) => OVER_MPI,
        }
    }

    fn title(self, target: &Target, ranks: u32) -> String {
        match self {
            Group::Ours => format!("{ranks} ranks, {}", target.title()),
            Group::BesideMpjExpress(_) => format!("{ranks} ranks beside {MPJ_EXPRESS}, {}", target.title()),
            Group::Over(program) => format!("{ranks} ranks over {}, {}", program.peer(), target.title()),
        }
    }
}

impl CollectiveRun<'_> {
    /// Measures all rows. `progress` gets the name of each measurement.
    ///
    /// # Errors
    /// No row has a name that was asked for, a system call failed, or `stop` is set.
    pub fn run(&self, progress: &dyn Fn(&str)) -> Result<Outcome, BenchError> {
        let over = self.peers.iter().filter_map(|program| program.over(Transport::Mpi));
        let over: Vec<Program> = over.collect();
        let mpj_express = self.mpj_express.ok().map(Group::BesideMpjExpress);
        let groups = [Group::Ours].into_iter().chain(mpj_express).chain(over.iter().map(Group::Over));
        let mut outcome = Outcome::default();
        for group in groups {
            for ranks in self.numbers(group) {
                self.measure_group(group, ranks, progress, &mut outcome)?;
            }
        }
        if let Err(why) = self.mpj_express {
            self.add_absent_mpj_express(why, &mut outcome);
        }
        if outcome.figures.is_empty() {
            let why = format!("no row has one of the names {:?}; --help lists the rows", self.rows);
            return Err(BenchError::Missing(why));
        }
        Ok(outcome)
    }

    /// Numbers of ranks of a group.
    fn numbers(&self, group: Group<'_>) -> Vec<u32> {
        let of_rows = group.targets().iter().flat_map(|target| target.ranks);
        let mut numbers: Vec<u32> =
            if self.ranks.is_empty() { of_rows.copied().collect() } else { self.ranks.to_vec() };
        numbers.sort_unstable();
        numbers.dedup();
        numbers
    }

    /// Whether a row is asked for.
    fn is_asked(&self, title: &str) -> bool {
        let title = title.to_lowercase();
        self.rows.is_empty() || self.rows.iter().any(|part| title.contains(&part.to_lowercase()))
    }

    fn measure_group(
        &self,
        group: Group<'_>,
        ranks: u32,
        progress: &dyn Fn(&str),
        outcome: &mut Outcome,
    ) -> Result<(), BenchError> {
        let has_ranks = |target: &&Target| !self.ranks.is_empty() || target.ranks.contains(&ranks);
        let is_asked = |target: &&Target| self.is_asked(&group.title(target, ranks));
        let targets: Vec<&Target> = group.targets().iter().filter(has_ranks).filter(is_asked).collect();
        if targets.is_empty() {
            return Ok(());
        }
        let (mut figures_of_jobs, mut rows_of_jobs) = (Vec::new(), Vec::new());
        for number in 1..=self.jobs {
            let mut jobs = self.start(&self.contestants(group), ranks, outcome);
            let (mut figures, mut rows, mut compiled) = (Vec::new(), Vec::new(), Vec::new());
            for target in &targets {
                let title = group.title(target, ranks);
                progress(&format!("job {number} of {}: {title}", self.jobs));
                let pace = self.pace_of(ranks, compiled.contains(&target.call));
                compiled.push(target.call);
                let (row, figure) = self.measure(&mut jobs, target, pace, &mut outcome.errors)?;
                figures.push(Figure { title, ..figure });
                rows.push(row);
            }
            outcome.errors.extend(RunningJob::end_all(jobs.jobs));
            figures_of_jobs.push(figures);
            rows_of_jobs.push(rows);
        }
        outcome.figures.extend(figures::medians(figures_of_jobs));
        outcome.rows.extend(report::medians(rows_of_jobs));
        Ok(())
    }

    /// The pace of a row. The first row of a call waits for the JIT compilers of all ranks.
    fn pace_of(&self, ranks: u32, is_compiled: bool) -> Pace {
        let crowding = ranks.div_ceil(contestant::processors().max(1));
        let least = (4 * self.pace.time).min(contest::COMPILED_AFTER) * crowding;
        Pace { compiled_after: if is_compiled { self.pace.time } else { least }, ..self.pace }
    }

    /// Contestants of a group with their roles.
    fn contestants(&self, group: Group<'_>) -> Vec<(Role, Contestant)> {
        let java = (Role::Java, Contestant::Java(self.transport));
        match group {
            Group::Ours => {
                let ours = [java, (Role::Rust, Contestant::Rust(self.transport))];
                let peers = self.peers.iter().map(|program| (Role::Peer, Contestant::C(program.clone())));
                ours.into_iter().chain(peers).collect()
            }
            Group::BesideMpjExpress(installed) => {
                vec![java, (Role::Peer, Contestant::MpjExpress(installed.clone()))]
            }
            Group::Over(program) => vec![
                (Role::Java, Contestant::JavaOver(program.clone())),
                (Role::Peer, Contestant::C(program.clone())),
            ],
        }
    }

    /// Starts contestants. An absent one is named, and the others are measured without it.
    fn start(&self, contestants: &[(Role, Contestant)], ranks: u32, outcome: &mut Outcome) -> Jobs {
        let mut started = Jobs::default();
        for (role, contestant) in contestants {
            match RunningJob::start(contestant, ranks, self.tools) {
                Ok(job) => {
                    started.roles.push(*role);
                    started.jobs.push(job);
                }
                Err(error) => {
                    let absent = Absent { name: contestant.name(), why: error.to_string() };
                    if outcome.absent.iter().all(|known| known.name != absent.name) {
                        outcome.absent.push(absent);
                    }
                    outcome.errors.push(error);
                }
            }
        }
        started
    }

    /// Measures a row. A contestant that fails is left out from then on.
    fn measure(
        &self,
        jobs: &mut Jobs,
        target: &Target,
        pace: Pace,
        errors: &mut Vec<BenchError>,
    ) -> Result<(Row, Figure), BenchError> {
        loop {
            match self.take_turns(jobs, target, pace) {
                Err(BenchError::Contestant { name, why }) if jobs.remove(&name) => {
                    errors.push(BenchError::Contestant { name, why });
                }
                done => return done,
            }
        }
    }

    fn take_turns(&self, jobs: &mut Jobs, target: &Target, pace: Pace) -> Result<(Row, Figure), BenchError> {
        let case = Case::Collective(target.call);
        let entry = |job: usize, case: Case| Entry { job, case, octets: target.octets };
        let takes_part = |job: &usize| target.call.is_of_c() || jobs.roles[*job] == Role::Java;
        let mut entries: Vec<Entry> =
            (0..jobs.jobs.len()).filter(takes_part).map(|job| entry(job, case)).collect();
        if target.value == Value::ByPredefined {
            let predefined = Case::Collective(Call::Allreduce);
            let beside: Vec<Entry> = entries.iter().map(|one| entry(one.job, predefined)).collect();
            entries.extend(beside);
        }
        let ranks = jobs.jobs.first().map_or(0, RunningJob::size);
        let turns = contest::contest(&mut jobs.jobs, &entries, pace, self.stop)?;
        let samples: Vec<Vec<Sample>> = turns
            .samples
            .iter()
            .map(|turns| turns.iter().map(|one| of_a_call(one, target, ranks)).collect())
            .collect();
        let compared = compare(&samples);
        let name = |one: &Entry| match one.case == case {
            true => jobs.jobs[one.job].name().to_owned(),
            false => format!("{}, predefined", jobs.jobs[one.job].name()),
        };
        let names: Vec<String> = entries.iter().map(name).collect();
        let roles: Vec<Role> = entries.iter().map(|one| jobs.roles[one.job]).collect();
        let figure = Figure { others: turns.others, ..figure(target, ranks, &compared, &roles) };
        Ok((Row::new(case, target.octets, ranks, &names, compared).beside(turns.others), figure))
    }

    /// The row of MPJ Express where it is absent.
    fn add_absent_mpj_express(&self, why: &str, outcome: &mut Outcome) {
        let title = "2 and 8 ranks beside MPJ Express";
        if self.is_asked(title) {
            let (quantity, limit) = (Quantity::Speed(0, 1), Limit::Least(OF_MPJ_EXPRESS));
            outcome.figures.push(figures::Target { title, quantity, limit }.figure(None));
            let compared = Compared { summaries: Vec::new(), ..compare(&[]) };
            outcome.rows.push(Row::new(Case::Collective(Call::Barrier), 0, 0, &[], compared));
            outcome.absent.push(Absent { name: MPJ_EXPRESS.to_owned(), why: why.to_owned() });
        }
    }
}

/// A turn with the time of one call: the mean over the ranks of their medians, whose sum is the second
/// result. The new second result is the time of a barrier and a call at rank 0.
fn of_a_call(turn: &Sample, target: &Target, ranks: u32) -> Sample {
    let mean = turn.extra / f64::from(ranks.max(1));
    match target.value {
        Value::Garbage => Sample { extra: mean, ..*turn },
        Value::ByC | Value::OfMpjExpress | Value::BeyondC | Value::ByPredefined => {
            Sample { nanos: mean, extra: turn.nanos, ..*turn }
        }
    }
}

/// The figure of a row. The first result of Java and that of the better peer count.
fn figure(target: &Target, ranks: u32, compared: &Compared, roles: &[Role]) -> Figure {
    let of = |role| compared.summaries.iter().zip(roles).filter(move |(_, known)| **known == role);
    let mut ours = of(Role::Java).map(|(summary, _)| *summary);
    let first = ours.next().flatten();
    let better = |one: &Summary, other: &Summary| one.median.total_cmp(&other.median);
    let second = match target.value {
        Value::ByPredefined => ours.next().flatten(),
        Value::ByC | Value::OfMpjExpress | Value::BeyondC => {
            of(Role::Peer).filter_map(|(summary, _)| *summary).min_by(better)
        }
        Value::Garbage => None,
    };
    let quantity = match target.value {
        Value::ByC | Value::ByPredefined => Quantity::Ratio(0, 1),
        Value::OfMpjExpress => Quantity::Speed(0, 1),
        Value::BeyondC => Quantity::Beyond(0, 1),
        Value::Garbage => Quantity::Extra(0),
    };
    let of_two = Compared { summaries: vec![first, second], ..compared.clone() };
    figures::Target { title: "", quantity, limit: target.limit(ranks) }.evaluate(&of_two, &[])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figures::FigureStatus;

    fn turns(sum: f64) -> Vec<Sample> {
        vec![Sample { nanos: 1.0, extra: sum, before: Some(30.0), after: Some(30.0), counted: None }; 3]
    }

    fn figure_of(target: &Target, sums: &[f64], roles: &[Role]) -> Figure {
        let one = |sum: &f64| turns(*sum).iter().map(|turn| of_a_call(turn, target, 2)).collect();
        let samples: Vec<Vec<Sample>> = sums.iter().map(one).collect();
        figure(target, 2, &compare(&samples), roles)
    }

    #[test]
    fn time_is_the_mean_over_the_ranks_and_is_divided_by_the_better_c() {
        let figure = figure_of(&OVER_OURS[0], &[600.0, 800.0, 400.0], &[Role::Java, Role::Peer, Role::Peer]);
        assert_eq!((figure.ours, figure.against), (Some(300.0), Some(200.0)));
        assert_eq!((figure.measured, figure.status), (Some(1.5), FigureStatus::Missed));
        let alone = figure_of(&OVER_OURS[0], &[600.0], &[Role::Java]);
        assert_eq!((alone.measured, alone.status), (None, FigureStatus::Unknown));
        let without_java = figure_of(&OVER_OURS[0], &[600.0], &[Role::Peer]);
        assert_eq!((without_java.measured, without_java.against), (None, Some(300.0)));
    }

    #[test]
    fn ranks_in_rust_count_neither_as_java_nor_as_a_peer() {
        let roles = [Role::Rust, Role::Java, Role::Peer];
        let figure = figure_of(&OVER_OURS[0], &[100.0, 600.0, 400.0], &roles);
        assert_eq!((figure.ours, figure.against), (Some(300.0), Some(200.0)));
        let without_java = figure_of(&OVER_OURS[0], &[100.0, 400.0], &[Role::Rust, Role::Peer]);
        assert_eq!((without_java.ours, without_java.against), (None, Some(200.0)));
    }

    #[test]
    fn time_of_mpj_express_is_divided_by_that_of_java() {
        let of = |sums: &[f64]| figure_of(&BESIDE_MPJ_EXPRESS[0], sums, &[Role::Java, Role::Peer]);
        let slow = of(&[400.0, 4000.0]);
        assert_eq!((slow.measured, slow.status), (Some(10.0), FigureStatus::Reached));
        let fast = of(&[400.0, 2000.0]);
        assert_eq!((fast.measured, fast.status), (Some(5.0), FigureStatus::Missed));
    }

    #[test]
    fn other_values_have_figures_of_their_own() {
        let of = |value| *OVER_OURS.iter().chain(OVER_MPI).find(|row| row.value == value).expect("a row");
        let beyond = figure_of(&of(Value::BeyondC), &[1200.0, 800.0], &[Role::Java, Role::Peer]);
        assert_eq!((beyond.measured, beyond.status), (Some(200.0), FigureStatus::Reached));
        let user = figure_of(&of(Value::ByPredefined), &[600.0, 200.0], &[Role::Java; 2]);
        assert_eq!((user.measured, user.status), (Some(3.0), FigureStatus::Missed));
        let garbage = figure_of(&of(Value::Garbage), &[0.0], &[Role::Java]);
        assert_eq!((garbage.measured, garbage.status), (Some(0.0), FigureStatus::Reached));
    }
}
