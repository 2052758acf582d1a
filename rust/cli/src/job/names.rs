//! Names of ranks in messages: world ranks when the job has formed, numbers within the site before.

/// The names of the ranks of one launcher.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Names {
    /// The number of the launcher's site, in a job of several.
    pub site: Option<u32>,
    /// World rank of the first rank. A site learns it when the job forms.
    pub first: Option<u32>,
    /// Whether the launcher starts sites in place of ranks.
    pub are_sites: bool,
    /// The host of the ranks, in a job of several.
    pub host: Option<String>,
}

impl Names {
    /// Names in a job of one launcher.
    #[must_use]
    pub fn alone() -> Names {
        Names { first: Some(0), ..Names::default() }
    }

    /// The noun for one of them.
    #[must_use]
    pub fn noun(&self) -> &'static str {
        if self.are_sites { "site" } else { "rank" }
    }

    /// The name of one rank of the launcher.
    #[must_use]
    pub fn rank(&self, rank: u32) -> String {
        self.ranks(&[rank])
    }

    /// The name of one rank with its host, for other hosts.
    #[must_use]
    pub fn rank_on_host(&self, rank: u32) -> String {
        let host = self.host.as_ref().map(|host| format!(" on {host}")).unwrap_or_default();
        self.rank(rank) + &host
    }

    /// The names of several ranks of the launcher: the first eight, and a count.
    #[must_use]
    pub fn ranks(&self, ranks: &[u32]) -> String {
        const NAMED: usize = 8;
        let (named, others) = ranks.split_at(ranks.len().min(NAMED));
        let mut words: Vec<String> = named.iter().map(|rank| self.number(*rank).to_string()).collect();
        words.extend((!others.is_empty()).then(|| format!("{} others", others.len())));
        let list = match words.split_last() {
            Some((last, first)) if !first.is_empty() => {
                format!("{}s {} and {last}", self.noun(), first.join(", "))
            }
            _ => format!("{} {}", self.noun(), words.concat()),
        };
        match (self.first, self.site) {
            (None, Some(site)) => format!("{list} of site {site}"),
            _ => list,
        }
    }

    /// The tag of a rank's lines of output, without brackets.
    #[must_use]
    pub fn tag(&self, rank: u32) -> String {
        match (self.first, self.site) {
            (None, Some(site)) => format!("{site}.{rank}"),
            _ => {
                let host = self.host.as_ref().map(|host| format!("@{host}")).unwrap_or_default();
                format!("{}{host}", self.number(rank))
            }
        }
    }

    fn number(&self, rank: u32) -> u32 {
        self.first.unwrap_or(0) + rank
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_list_of_ranks_ends_with_a_count() {
        let listed = |count| Names::alone().ranks(&(1..=count).collect::<Vec<_>>());
        assert_eq!(listed(1), "rank 1");
        assert_eq!(listed(2), "ranks 1 and 2");
        assert_eq!(listed(8), "ranks 1, 2, 3, 4, 5, 6, 7 and 8");
        assert_eq!(listed(108), "ranks 1, 2, 3, 4, 5, 6, 7, 8 and 100 others");
    }

    #[test]
    fn ranks_of_a_site_have_world_ranks_when_the_job_has_formed() {
        let mut names = Names { site: Some(2), ..Names::default() };
        assert_eq!((names.rank(1), names.tag(1)), ("rank 1 of site 2".to_owned(), "2.1".to_owned()));
        assert_eq!(names.ranks(&[0, 3]), "ranks 0 and 3 of site 2");
        names.first = Some(10);
        assert_eq!((names.rank(1), names.tag(1)), ("rank 11".to_owned(), "11".to_owned()));
        assert_eq!(names.ranks(&[0, 3]), "ranks 10 and 13");
    }

    #[test]
    fn ranks_of_a_host_are_named_with_it() {
        let names = Names { host: Some("b".into()), first: Some(4), ..Names::default() };
        assert_eq!(
            (names.rank(1), names.rank_on_host(1), names.tag(1)),
            ("rank 5".into(), "rank 5 on b".into(), "5@b".into())
        );
        assert_eq!(Names::alone().rank_on_host(1), "rank 1");
    }

    #[test]
    fn sites_are_called_sites() {
        let names = Names { are_sites: true, ..Names::alone() };
        assert_eq!((names.rank(1), names.ranks(&[0, 1])), ("site 1".to_owned(), "sites 0 and 1".to_owned()));
    }
}
