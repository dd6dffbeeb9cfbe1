-- A task that stayed active though its step or run has ended (rows as 0.14 left them): the claim that meets its message
-- ends it, whichever function claims.
begin;
\ir helpers.psql

select plan(13);

select pg_temp.compile('f', 'step', jsonb_build_array(pg_temp.map('a')));
select pg_temp.compile('g', 'flow', jsonb_build_array(pg_temp.map('a')));
select pg_temp.start('f', 'skipped step', '[1, 2]');
select pg_temp.start('f', 'failed run', '[1, 2]');
select pg_temp.start('f', 'completed run', '[1]');
select pg_temp.start('g', 'flow mode', '[1]');

-- The first task of each is started, the second one queued.
select is(
  (
    select array_agg(outcome)
    from pg_temp.claim_messages('f', 'a', array[pg_temp.msg('skipped step', 'a'), pg_temp.msg('failed run', 'a')])
  ),
  array['claimed', 'claimed'],
  'one task of each run is in progress'
);
update pgflow.step_states
set status = 'skipped', skip_reason = 'handler_failed', skipped_at = now(), remaining_tasks = null
where run_id = pg_temp.id('skipped step');
update pgflow.runs set status = 'failed', failed_at = now()
where run_id in (pg_temp.id('failed run'), pg_temp.id('flow mode'));
update pgflow.runs
set status = 'completed', completed_at = now()
where run_id = pg_temp.id('completed run');
select pg_temp.pass_time('f');

select results_eq(
  $$select msg_id, outcome, reason from pg_temp.claim('f', 'a', 10)$$,
  $$
    values
    (1::bigint, 'archived', 'step is skipped'),
    (2, 'archived', 'step is skipped'),
    (3, 'archived', 'run is failed'),
    (4, 'archived', 'run is failed'),
    (5, 'archived', 'run is completed')
  $$,
  'none is handed out'
);
select is(pg_temp.attempts('skipped step', 'a'), 'skipped 1, skipped 0', 'tasks of a skipped step are skipped');
select is(pg_temp.attempts('failed run', 'a'), 'cancelled 1, cancelled 0', 'tasks of a failed run are cancelled');
select ok(
  (
    select task.status
    from pgflow.step_tasks as task
    where task.run_id = pg_temp.id('completed run')
  ) not in ('queued', 'started'),
  'a task of a completed run has ended, too'
);
select is(
  (
    select count(*)
    from pgflow.step_tasks
    where skipped_at is not null or cancelled_at is not null
  ),
  5::bigint,
  'each with its time'
);
select is((select count(*) from pg_temp.messages('f')), 0::bigint, 'no message is left');
select is((select count(*) from pg_temp.archived('f')), 5::bigint, 'each is in the archive');
select is(
  (
    select count(*)
    from pgflow.worker_functions
    where not enabled
  ),
  0::bigint,
  'and nothing is disabled'
);

select results_eq(
  $$select outcome from pg_temp.claim_messages('f', 'a', array[1, 2])$$, array['archived', 'archived'],
  'a second claim says the same'
);
select is(pg_temp.whereabouts('f__a', 1), 'archived', 'and archives nothing twice');

select is_empty(
  $$select * from pgflow.start_tasks('g', array[1], pg_temp.worker('g'))$$,
  'start_tasks() hands nothing out for a failed run'
);
select is(
  (
    select attempts_count
    from pgflow.step_tasks
    where run_id = pg_temp.id('flow mode')
  ),
  0, 'and uses no attempt'
);

select *
from finish();
rollback;
