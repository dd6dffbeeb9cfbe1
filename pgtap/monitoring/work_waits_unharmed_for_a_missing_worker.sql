-- Nobody serves a step: its tasks wait on its queue, nothing else is held up, and a worker that comes finds all of them.
begin;
\ir ../workers/helpers.psql

select plan(13);

select pgflow.ensure_flow_compiled(
  'f', pg_temp.shape(pg_temp.step('a'), pg_temp.map('b', 'a'), pg_temp.step('c', 'a'), pg_temp.step('d', 'b,c')), false, 'step'
);
select pgflow.register_worker(pg_temp.worker('f', slug), 'fn-' || slug, 'f', slug)
from unnest(array['a', 'c', 'd']) as slug;
select pg_temp.start('f', 'r');
select is(pg_temp.drain('f', '{"a": [1, 2, 3], "c": "done"}'), 2, 'the workers there are do what they can');
select is(pg_temp.steps('r'), 'a completed, b started, c completed, d created', 'only the step without a worker waits');

-- An hour passes; recovery and monitoring come by.
update pgflow.step_tasks set queued_at = queued_at - interval '1 hour' where status = 'queued';
update pgmq.q_f__b set enqueued_at = enqueued_at - interval '1 hour';
select is(pgflow.requeue_stalled_tasks(), 0, 'recovery has nothing to do with it');
select pgflow.prune_data_older_than('0');
select is(pg_temp.tasks('r', 'b'), 'queued, queued, queued', 'the tasks are as they were');
select results_eq(
  $$select attempts_count, requeued_count from pgflow.step_tasks where step_slug = 'b'$$,
  $$values (0, 0), (0, 0), (0, 0)$$,
  'without an attempt'
);
select results_eq(
  $$
    select kind, flow_slug, step_slug, queue_name, age >= interval '1 hour'
    from pgflow.stuck_work
  $$,
  $$values ('no live worker', 'f', 'b', 'f__b', true)$$,
  'what waits is in sight'
);
select is((select messages_total from pgflow.coverage_gaps('f')), 3::bigint, 'with the number of messages');
select results_eq(
  $$select status, steps_started, steps_completed, waits_for from pgflow.run_progress where run_id = pg_temp.id('r')$$,
  $$values ('started', 1::bigint, 2::bigint, array['b'])$$,
  'the run says what it waits for'
);
select pg_temp.is_sound('f', 'waiting is no fault');

-- The worker comes.
select pgflow.register_worker(pg_temp.worker('f', 'b'), 'fn-b', 'f', 'b');
select is_empty($$select * from pgflow.coverage_gaps('f')$$, 'with its worker the gap is closed');
select is(pg_temp.drain('f', '{"d": "end"}'), 4, 'and all that waited is done');
select is(pg_temp.output('r'), '{"d": "end"}'::jsonb, 'the run completes');
select pg_temp.nothing_left('f', 'and leaves nothing behind');

select * from finish();
rollback;
