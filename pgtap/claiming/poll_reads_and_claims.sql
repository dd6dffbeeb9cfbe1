begin;
\ir helpers.psql

select plan(33);

select pg_temp.compile('f', 'step', jsonb_build_array(pg_temp.map('a'), pg_temp.step('b')));
select pg_temp.compile('g', 'flow', jsonb_build_array(pg_temp.step('a'), pg_temp.step('b')));
select pg_temp.start('f', 'r', '[10, 11, 12, 13, 14]');

-- Arguments out of range, one by one; the error names the figure.
select throws_ok(
  format(
    'select * from pgflow.poll_tasks(%L, %s, %s, %s)', pg_temp.worker('f', 'a'), bad.tasks, bad.seconds, bad.ms
  ),
  'PF019', null,
  format('refused: max_tasks %s, max_poll_seconds %s, poll_interval_ms %s', bad.tasks, bad.seconds, bad.ms)
)
from (
  values
  ('0', '0', '100'),
  ('-1', '0', '100'),
  ('null', '0', '100'),
  ('10', '-1', '100'),
  ('10', '61', '100'),
  ('10', '2147483647', '100'),
  ('10', 'null', '100'),
  ('10', '0', '0'),
  ('10', '0', '-5'),
  ('10', '0', 'null')
) as bad (tasks, seconds, ms);
select is(pg_temp.attempts('r', 'a'), 'queued 0, queued 0, queued 0, queued 0, queued 0', 'and nothing was claimed');

select throws_like(
  $$select * from pgflow.poll_tasks(pg_temp.worker('f', 'a'), 10, 61)$$, '%range%',
  'the message says that it is the argument'
);

-- Oldest first, as many as asked for, each once.
select results_eq(
  $$
    select msg_id, outcome, reason, flow_slug, run_id, step_slug, task_index, attempt, input, flow_input
    from pg_temp.claim('f', 'a', 2)
  $$,
  $$
    values
    (1::bigint, 'claimed', null::text, 'f', pg_temp.id('r'), 'a', 0, 1, '10'::jsonb, null::jsonb),
    (2, 'claimed', null, 'f', pg_temp.id('r'), 'a', 1, 1, '11', null)
  $$,
  'a poll claims the oldest messages, with all that a worker needs'
);
select results_eq(
  $$select msg_id, outcome from pg_temp.claim('f', 'a', 2)$$,
  $$values (3::bigint, 'claimed'), (4, 'claimed')$$,
  'the next poll claims the next ones'
);
select results_eq(
  $$select msg_id, outcome from pg_temp.claim('f', 'a', 2)$$, $$values (5::bigint, 'claimed')$$,
  'the last one what is left'
);
select is_empty($$select * from pg_temp.claim('f', 'a', 2)$$, 'then there is nothing, and no wait');
select is(
  (select array_agg(read_ct) from pgmq.q_f__a), array[1, 1, 1, 1, 1], 'each message counts as read once'
);
select is(
  (
    select count(*)
    from pgmq.q_f__a
    where last_read_at is null
  ),
  0::bigint, 'with the time of its reading'
);

-- Its own step only.
select is_empty(
  $$select * from pg_temp.claim('f', 'a', 10) where step_slug <> 'a'$$, 'work of another step is not seen'
);
select is((select step_slug from pg_temp.claim('f', 'b', 10)), 'b', 'the worker of that step gets it');

-- A flow-mode flow: every step.
select pg_temp.start('g', 's', '{"x": 1}');
select results_eq(
  $$select step_slug, outcome, input, flow_input from pg_temp.claim('g', null, 10)$$,
  $$values ('a', 'claimed', '{}'::jsonb, '{"x": 1}'::jsonb), ('b', 'claimed', '{}', '{"x": 1}')$$,
  'a worker of a flow-mode flow gets every step of it'
);

-- What is hidden is not looked at.
select pg_temp.start('f', 'hidden', '[1, 2, 3]');
update pgmq.q_f__a
set vt = clock_timestamp() + interval '1 hour'
where msg_id in (6, 8);
select results_eq(
  $$select msg_id, outcome from pg_temp.claim('f', 'a', 10)$$, $$values (7::bigint, 'claimed')$$,
  'hidden messages are passed over'
);

-- A start delay hides work.
select pg_temp.compile('d', 'step', jsonb_build_array(pg_temp.step('a', more => pg_temp.options(start_delay => 600))));
select pg_temp.start('d', 'delayed');
select is_empty($$select * from pg_temp.claim('d', 'a')$$, 'work with a start delay is not claimed before its time');
update pgmq.q_d__a set vt = vt - interval '600 s';
select is((select outcome from pg_temp.claim('d', 'a')), 'claimed', 'then it is');

-- Every kind of message in one look.
select pg_temp.start('f', 'kinds', '[1, 2, 3]');
select is((select count(*) from pg_temp.claim_messages('f', 'a', array[9, 10])), 2::bigint, 'two of three are started');
select pgflow.complete_task(pg_temp.id('kinds'), 'a', 0, '1');
select pg_temp.put_back('f__a', 9);
update pgmq.q_f__a
set vt = clock_timestamp()
where msg_id = 10;
select results_eq(
  $$select msg_id, outcome from pg_temp.claim('f', 'a', 10) order by msg_id$$,
  $$values (9::bigint, 'archived'), (10, 'deferred'), (11, 'claimed')$$,
  'a poll archives, defers and claims in one batch'
);
select is_empty($$select * from pg_temp.claim('f', 'a', 10)$$, 'none of which comes again');

-- A wait that ends by itself; waiting for others is shown with several sessions in tests/.
select is_empty(
  $$select * from pgflow.poll_tasks(pg_temp.worker('f', 'a'), 10, 1, 60000)$$,
  'an interval longer than the wait does not prolong it'
);
set local plan_cache_mode to force_generic_plan;
select pg_temp.start('f', 'generic', '[1, 2, 3, 4]');
select results_eq(
  $$select msg_id, outcome from pg_temp.claim('f', 'a', 3)$$,
  $$values (12::bigint, 'claimed'), (13, 'claimed'), (14, 'claimed')$$,
  'under generic plans a poll does the same'
);

-- The physical queue is gone: neither an empty answer for ever nor an error about a table.
select pgmq.drop_queue('d__a');
select throws_ok(
  $$select * from pg_temp.claim('d', 'a')$$, 'PF007', null, 'a poll of a queue that somebody dropped says so'
);
select throws_ok(
  $$select * from pg_temp.claim_messages('d', 'a', array[1])$$, 'PF007', null, 'so does a claim'
);

-- A row for the flow that is gone.
select pgflow.delete_flow_and_data('g');
select throws_ok(
  $$select * from pg_temp.claim('g')$$, 'PF013', null, 'a poll for a deleted flow is told to stop'
);
select throws_ok(
  $$select * from pgflow.claim_tasks('g', 'g', null, array[1], pg_temp.worker('g'))$$, 'PF013', null, 'so is a claim'
);

select *
from finish();
rollback;
