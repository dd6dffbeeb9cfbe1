begin;
\ir ../claiming/helpers.psql

select plan(19);

select pg_temp.compile(
  'f', 'step', jsonb_build_array(pg_temp.map('a'), pg_temp.step('b'), pg_temp.step('c', 'b')),
  '{"maxAttempts": 3, "timeout": 60}'
);
select pg_temp.compile('g', 'flow', jsonb_build_array(pg_temp.step('a')), '{"maxAttempts": 3, "timeout": 60}');

-- Started tasks under parents that have ended, as 0.14 could leave them.
select pg_temp.start('f', 'failed run', '[1, 2]');
select pg_temp.start('f', 'skipped step', '[1, 2]');
select pg_temp.start('f', 'completed step', '[1]');
select is((select count(*) from pg_temp.claim('f', 'a', 10)), 5::bigint, 'tasks of three runs are started');
update pgflow.runs
set status = 'failed', failed_at = now()
where run_id = pg_temp.id('failed run');
update pgflow.step_states
set status = 'skipped', skip_reason = 'handler_failed', skipped_at = now(), remaining_tasks = null
where run_id = pg_temp.id('skipped step') and step_slug = 'a';
update pgflow.step_states set status = 'completed', completed_at = now(), remaining_tasks = 0
where run_id = pg_temp.id('completed step') and step_slug = 'a';
select pg_temp.age(name, interval '1 day') from unnest(array['failed run', 'skipped step', 'completed step']) as name;
create temporary table picture_before as
select pg_temp.picture('f') as picture;
select is_empty('select * from pgflow.stalled_tasks', 'a started task of an ended run or step is not stalled');
select is(pgflow.requeue_stalled_tasks(), 0, 'a sweep does not queue it again');
select is(pg_temp.picture('f'), picture, 'and leaves all of it untouched') from picture_before;

-- Queued tasks, however old.
select pg_temp.start('f', 'queued', '[1]');
update pgflow.step_tasks
set queued_at = queued_at - interval '1 year'
where run_id = pg_temp.id('queued');
update pgflow.runs
set started_at = started_at - interval '1 year'
where run_id = pg_temp.id('queued');
select is(pgflow.requeue_stalled_tasks(), 0, 'a task that nobody has claimed is not stalled');

-- A great many that are past their timeout but not their lease, then one that is eligible.
select pg_temp.start('f', 'many', (select jsonb_agg(number) from generate_series(1, 10000) as number));
update pgflow.step_tasks
set
  status = 'started',
  attempts_count = 1,
  started_at = clock_timestamp() - interval '1 day',
  lease_extended_until = clock_timestamp() + interval '1 day'
where run_id = pg_temp.id('many')
  and step_slug = 'a';
update pgflow.step_tasks
set lease_extended_until = null
where run_id = pg_temp.id('many')
  and task_index = 9999;
select is(pgflow.requeue_stalled_tasks(), 1, 'one eligible task behind 10,000 that are not is found in one sweep');
select is((pg_temp.task('many', 'a', 9999)).status, 'queued', 'it is that one');

-- Many at once, over several queues and both modes.
update pgflow.step_tasks
set lease_extended_until = null
where run_id = pg_temp.id('many')
  and task_index < 300;
select pg_temp.start('g', 's1');
select pg_temp.start('g', 's2');
select is((select count(*) from pg_temp.claim('g', null, 10)), 2::bigint, 'two more in flow mode');
select pg_temp.age('s1', interval '1 day');
select pg_temp.age('s2', interval '1 day');
select is(pgflow.requeue_stalled_tasks(), 302, 'a sweep takes all that are stalled');
select is(
  (
    select count(*)
    from pgflow.step_tasks
    where requeued_count = 1
      and status = 'queued'
  ),
  303::bigint,
  'each is queued again, once'
);
select results_eq($$select vt <= clock_timestamp() from pgmq.q_g$$, array[true, true], 'and can be read on each queue');

-- The worker's row went first.
select is((select count(*) from pg_temp.claim('g', null, 10)), 2::bigint, 'claimed again');
delete
from pgflow.workers
where worker_id = pg_temp.worker('g');
select is((pg_temp.task('s1', 'a')).last_worker_id, null, 'the worker''s row is deleted');
select pg_temp.age('s1', interval '1 day');
select is(pgflow.requeue_stalled_tasks(), 1, 'its task is recovered all the same');
select is(pg_temp.attempts('s1', 'a'), 'queued 2', 'and queued');
select is(pg_temp.attempts('s2', 'a'), 'started 2', 'the other one is within its time');

-- A message that is lost as well does not stop the sweep.
select pg_temp.lose_message('g', 2);
select pg_temp.age('s2', interval '1 day');
select is(pgflow.requeue_stalled_tasks(), 1, 'a stalled task without a message is queued, too');
select is(pg_temp.attempts('s2', 'a'), 'queued 2', 'for repair to send its message again');
select is(
  (select array_agg(action || ' ' || count) from pgflow.repair_queues('g')), array['sent 1'], 'which it does'
);

select *
from finish();
rollback;
