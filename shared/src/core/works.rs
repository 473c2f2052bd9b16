//! What the core waits for.

use super::Scheduler;
use super::state::Environment;
use crate::id::ReplicaId;
use crate::work::Work;

impl Scheduler {
    /// The work that the core has started and waits for, with the replica it runs on. O(everything).
    pub fn works(&self) -> impl Iterator<Item = (Work, Option<ReplicaId>)> {
        let turns = self.turns.iter().map(|(_, turn)| turn).filter(|turn| turn.on_replica());
        let turns = turns.map(|turn| {
            let (request, attempt) = (turn.request, turn.attempt);
            (Work::Generation { request, attempt }, Some(self.replicas[turn.replica].id))
        });
        let sessions = self.sessions.iter().map(|(_, session)| session);
        let works =
            |environment| matches!(environment, Environment::Resetting | Environment::Stepping);
        let environments = sessions.filter(move |session| works(session.environment));
        let environments = environments.map(|session| {
            let (session, attempt) = (session.id, session.environment_attempt);
            (Work::Environment { session, attempt }, None)
        });
        let votes = self.votes.iter().map(|(_, vote)| (Work::Vote(vote.id), None));
        let step = self.trainer.step().map(|step| (Work::Step(step), None));
        let publication = self.weights.current;
        let saving = publication.filter(|publication| publication.saving_since.is_some());
        let saving = saving.map(|publication| (Work::Save(publication.id()), None));
        let loading = self.replicas.iter().filter(|replica| replica.sync.loads());
        let loads = loading.filter_map(move |replica| {
            let publication = publication?.id();
            Some((Work::Load { publication, replica: replica.id }, Some(replica.id)))
        });
        turns.chain(environments).chain(votes).chain(step).chain(saving).chain(loads)
    }
}
