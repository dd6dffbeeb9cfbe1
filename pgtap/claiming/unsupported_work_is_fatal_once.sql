-- A message that belongs to no task of the subscription: nothing is claimed, everything is visible again, the function
-- is disabled, and nothing else suffers. (The text of the warning: tests/test_unsupported_work_warning.py.)
begin;
\ir helpers.psql
set local client_min_messages to error;

select plan(36);

select pg_temp.compile('f', 'step', jsonb_build_array(pg_temp.map('a'), pg_temp.map('b')));
select pgflow.register_worker(pg_temp.id('sibling'), 'f_a', 'f', 'a');
select pgflow.register_worker(pg_temp.id('other'), 'other_fn', 'f', 'a');
select pg_temp.start('f', 'r', '["x", "y"]');

-- Junk that looks like ours, of a run that is not there.
select is(
  pgmq.send(
    'f__a',
    jsonb_build_object('flow_slug', 'f', 'run_id', gen_random_uuid(), 'step_slug', 'a', 'task_index', 0)
  ),
  3::bigint,
  'a stranger sends a message that looks like one of ours'
);
create temporary table picture_before as
select count(*) as archived from pg_temp.archived('f');

select results_eq(
  $$
    select msg_id, outcome, reason, flow_slug, run_id, step_slug, task_index, attempt, input, flow_input
    from pg_temp.claim('f', 'a', 10)
  $$,
  $$
    values
    (
      1::bigint, 'released', 'its batch held unsupported work', null::text, null::uuid, null::text, null::int, null::int,
      null::jsonb, null::jsonb
    ),
    (2, 'released', 'its batch held unsupported work', null, null, null, null, null, null, null),
    (3, 'unsupported', 'no task has this message', null, null, null, null, null, null, null)
  $$,
  'a poll that meets it hands out nothing'
);
select is(pg_temp.attempts('r', 'a'), 'queued 0, queued 0', 'no attempt is used');
select is((select count(*) from pg_temp.archived('f')), archived, 'nothing is archived') from picture_before;
select results_eq(
  $$select pg_temp.whereabouts('f__a', id) from unnest(array[1, 2, 3]) as id$$,
  array['visible', 'visible', 'visible'],
  'every message of the batch is visible'
);

select results_eq(
  'select function_name, enabled from pgflow.worker_functions order by 1',
  $$values ('f_a', false), ('f_b', true), ('other_fn', true)$$,
  'the function of the worker is disabled, and no other one'
);
select ok(disabled_at between now() and clock_timestamp(), 'it is recorded when')
from pgflow.worker_functions
where function_name = 'f_a';
select ok(
  position('f__a' in disabled_reason) > 0 and disabled_reason ~ '\m3\M' and disabled_reason !~ 'run_id',
  'and why: with queue and id, without the body'
)
from pgflow.worker_functions
where function_name = 'f_a';
select isnt(
  (
    select stop_reason
    from pgflow.workers
    where worker_id = pg_temp.worker('f', 'a')
  ),
  null,
  'the worker is told to stop'
);
select results_eq(
  $$
    select worker_id, stop_reason
    from pgflow.workers
    where worker_id <> pg_temp.worker('f', 'a')
      and stop_reason is not null
  $$,
  $$select null::uuid, null::text where false$$,
  'no other worker''s row is written'
);

select is(
  (
    select array_agg(beat.should_stop)
    from pgflow.workers as worker
    cross join lateral pgflow.heartbeat(worker.worker_id) as beat
    where worker.function_name = 'f_a'
  ),
  array[true, true],
  'all workers of the function learn by their heartbeat that they must stop'
);
select throws_ok(
  $$select * from pg_temp.claim('f', 'a')$$, 'PF012', null, 'the worker is refused from now on'
);
select throws_ok(
  $$select * from pgflow.poll_tasks(pg_temp.id('sibling'), 1, 0)$$, 'PF012', null,
  'so are other workers of the function'
);
select throws_ok(
  $$select * from pgflow.claim_tasks('f__a', 'f', 'a', array[1], pg_temp.id('sibling'))$$, 'PF012', null,
  'by ids, too'
);
select throws_like(
  $$select pgflow.register_worker(gen_random_uuid(), 'f_a', 'f', 'a')$$,
  '%message ids 3%',
  'nor can a new worker of it register; the error says why'
);
select is_empty(
  $$select * from pgflow.ensure_workers() where function_name = 'f_a'$$, 'ensure_workers() does not start it again'
);
select is(pg_temp.attempts('r', 'a'), 'queued 0, queued 0', 'refused calls have changed no task');
select results_eq(
  $$select pg_temp.whereabouts('f__a', id) from unnest(array[1, 2, 3]) as id$$,
  array['visible', 'visible', 'visible'],
  'nor hidden a message'
);

select results_eq(
  $$select outcome, attempt from pg_temp.claim('f', 'b', 10)$$,
  $$values ('claimed', 1), ('claimed', 1)$$,
  'the other step goes on'
);

-- The message still lies there: another function that serves the queue meets it as well.
select results_eq(
  $$select msg_id, outcome from pgflow.poll_tasks(pg_temp.id('other'), 10, 0)$$,
  $$values (1::bigint, 'released'), (2, 'released'), (3, 'unsupported')$$,
  'another function of the step meets the same message'
);
select is(
  (
    select enabled
    from pgflow.worker_functions
    where function_name = 'other_fn'
  ),
  false,
  'and is disabled by its own batch'
);

-- The way out.
select is(
  (select array_agg(class) from pgflow.classify_messages('f__a', 'f', 'a', array[1, 2, 3])),
  array['claimable', 'claimable', 'unsupported'],
  'an operator sees which message it is'
);
select ok(pgflow.quarantine_message('f__a', 3), 'moves it aside');
select is((pgflow.enable_worker_function('f_a')).enabled, true, 'and enables the function');
select throws_ok(
  $$select * from pg_temp.claim('f', 'a')$$, 'PF013', null, 'the worker that was told to stop stays stopped'
);
select throws_ok(
  $$select pgflow.register_worker(pg_temp.worker('f', 'a'), 'f_a', 'f', 'a')$$, 'PF010', null, 'its id is used up'
);
select results_eq(
  $$select outcome, attempt from pgflow.poll_tasks(pg_temp.id('sibling'), 10, 0)$$,
  $$values ('claimed', 1), ('claimed', 1)$$,
  'others of the function go on, with the first attempt'
);

-- By ids: a batch is fatal though the message is hidden, and hidden messages of it are made visible.
select pgflow.enable_worker_function('other_fn');
select pgflow.register_worker(pg_temp.id('third'), 'other_fn', 'f', 'a');
select pg_temp.start('f', 's', '["x", "y"]');
select is(pgmq.send('f__a', '{}'), 6::bigint, 'another stranger');
select is((select count(*) from pgmq.read('f__a', 3600, 10)), 3::bigint, 'a client reads, which hides');
select results_eq(
  $$select msg_id, outcome from pgflow.claim_tasks('f__a', 'f', 'a', array[6, 4, 777, 1, 5], pg_temp.id('third'))$$,
  $$values (6::bigint, 'unsupported'), (4, 'released'), (777, 'released'), (1, 'released'), (5, 'released')$$,
  'a fatal batch keeps the order passed, whatever the rest is'
);
select results_eq(
  $$select pg_temp.whereabouts('f__a', id) from unnest(array[6, 4, 5]) as id$$,
  array['visible', 'visible', 'visible'],
  'the complete batch is visible again'
);
select is(pg_temp.attempts('s', 'a'), 'queued 0, queued 0', 'and no attempt is used');
select is(pg_temp.attempts('r', 'a'), 'started 1, started 1', 'a task that others work on is left to them');

-- Junk behind more work than a batch holds does not stop that work.
select pgflow.enable_worker_function('other_fn');
select pgflow.register_worker(pg_temp.id('fourth'), 'other_fn', 'f', 'a');
update pgmq.q_f__a
set vt = clock_timestamp()
where msg_id in (4, 5);
update pgmq.q_f__a
set vt = clock_timestamp()
where msg_id = 6;
update pgmq.q_f__a
set vt = clock_timestamp() + interval '1 hour'
where msg_id in (1, 2);
select results_eq(
  $$select msg_id, outcome from pgflow.poll_tasks(pg_temp.id('fourth'), 2, 0)$$,
  $$values (4::bigint, 'claimed'), (5, 'claimed')$$,
  'work before it is claimed in batches that do not reach it'
);
select results_eq(
  $$select msg_id, outcome from pgflow.poll_tasks(pg_temp.id('fourth'), 2, 0)$$,
  $$values (6::bigint, 'unsupported')$$,
  'the batch that reaches it is fatal'
);
select results_eq(
  $$select kind, queue_name, msg_id from pgflow.stuck_work where flow_slug = 'f' and step_slug = 'a'$$,
  $$values ('message without a task', 'f__a', 6::bigint)$$,
  'stuck_work shows the message'
);

select *
from finish();
rollback;
