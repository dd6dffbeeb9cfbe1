begin;
\ir ../workers/helpers.psql

select plan(17);

select pg_temp.compile('f', 'step', jsonb_build_array(pg_temp.map('a', more => pg_temp.options(max_attempts => 2)), pg_temp.step('b')));
select pg_temp.compile('calm', 'step', jsonb_build_array(pg_temp.step('a')));
select pg_temp.start('f', 'r', '[1, 2, 3, 4]');
select pg_temp.start('calm', 's');
select is_empty('select * from pgflow.stuck_work', 'work that waits for a live worker is not stuck');

-- No worker.
select pgflow.mark_worker_stopped(pg_temp.worker('f', 'b'));
select results_eq(
  'select kind, flow_slug, step_slug, queue_name, run_id, msg_id from pgflow.stuck_work',
  $$values ('no live worker', 'f', 'b', 'f__b', null::uuid, null::bigint)$$,
  'a queue without a live worker is listed'
);
select alike(
  (select reason from pgflow.stuck_work), '1 messages wait and no live worker serves this queue; %', 'with the reason'
);
select pgflow.register_worker(pg_temp.id('b'), 'b', 'f', 'b');

-- Waiting, though somebody is there.
update pgmq.q_f__b set vt = clock_timestamp() - interval '59 minutes', enqueued_at = now() - interval '3 days';
select is_empty('select * from pgflow.stuck_work', 'a backlog of less than an hour is nothing special');
update pgmq.q_f__b set vt = clock_timestamp() - interval '61 minutes';
select results_eq(
  $$
    select kind, flow_slug, step_slug, queue_name, run_id, age between interval '60 minutes' and interval '62 minutes', reason
    from pgflow.stuck_work
  $$,
  $$
    values (
      'waiting too long', 'f', 'b', 'f__b', null::uuid, true,
      '1 messages could be claimed, one of them for more than an hour; live workers that serve this queue: 1'
    )
  $$,
  'work that nobody has claimed for an hour is listed, counted from when it could be'
);
update pgmq.q_f__b set vt = clock_timestamp() + interval '10 years';
select results_eq(
  $$select kind, step_slug, run_id, task_index, msg_id from pgflow.stuck_work$$,
  $$values ('message hidden too long', 'b', pg_temp.id('r'), 0, 1::bigint)$$,
  'and so is a message that nobody can read for years'
);
select alike(
  (select reason from pgflow.stuck_work), '%select pgmq.set_vt(''f__b'', 1, 0) shows it now', 'with the way out'
);
update pgmq.q_f__b set vt = clock_timestamp();

-- A task past its boundary.
select pg_temp.take('f', 'a');
select is_empty('select * from pgflow.stuck_work', 'a task in progress is not stuck');
update pgflow.step_tasks set started_at = started_at - interval '1 hour', queued_at = queued_at - interval '1 hour' where status = 'started';
select results_eq(
  $$select kind, step_slug, queue_name, run_id, task_index, age between interval '58 minutes' and interval '60 minutes', reason from pgflow.stuck_work$$,
  $$
    values (
      'stalled', 'a', 'f__a', pg_temp.id('r'), 0, true,
      'attempt 1 of 2 is past its recovery boundary; pgflow.requeue_stalled_tasks() queues it again'
    )
  $$,
  'a task past its boundary is listed, counted from the boundary'
);
select is(pgflow.requeue_stalled_tasks(), 1, 'recovery takes it back');
select is_empty('select * from pgflow.stuck_work', 'and it is stuck no longer');

-- A task without a message, a message without a task.
select pgmq.delete('f__a', 3::bigint);
select pgmq.send('f__a', '{"secret": "of somebody else"}');
select results_eq(
  $$select kind, flow_slug, step_slug, queue_name, run_id, task_index, msg_id from pgflow.stuck_work order by kind$$,
  $$
    values
    ('message without a task', 'f', 'a', 'f__a', null::uuid, null::int, 5::bigint),
    ('task without a message', 'f', 'a', 'f__a', pg_temp.id('r'), 2, 3)
  $$,
  'a lost message and a foreign one are listed'
);
select is_empty($$select * from pgflow.stuck_work as work where work::text like '%secret%'$$, 'never with a body');
select isnt_empty(
  $$select * from pgflow.stuck_work where reason <> '' and age is not null$$, 'each with reason and age'
);
select pgmq.delete('f__a', 5::bigint);

-- The last allowed attempt is lost.
select pg_temp.take('f', 'a');
update pgflow.step_tasks
set attempts_count = 2, started_at = started_at - interval '1 hour', queued_at = queued_at - interval '1 hour'
where status = 'started';
select alike(
  (select reason from pgflow.stuck_work where kind = 'stalled'), '% pgflow.requeue_stalled_tasks() fails it',
  'before its last attempt is given up, it says so'
);
select pgflow.requeue_stalled_tasks();
select results_eq(
  $$select kind, step_slug, run_id, reason from pgflow.stuck_work$$,
  $$
    values (
      'permanently stalled', 'a', pg_temp.id('r'), 'its last allowed attempt, number 2, was lost with its worker'
    )
  $$,
  'a task that was given up stays in sight'
);

-- A queue that somebody dropped.
select pgmq.drop_queue('calm__a');
select results_eq(
  $$select kind, queue_name, run_id from pgflow.stuck_work where flow_slug = 'calm'$$,
  $$values ('task without a message', 'calm__a', pg_temp.id('s'))$$,
  'a queue that is gone takes its messages with it'
);

select * from finish();
rollback;
