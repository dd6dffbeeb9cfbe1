-- An operator empties, drops or tidies up one thing: nothing beside it changes, and no foreign key is in the way.
begin;
\ir ../claiming/helpers.psql

select plan(28);

select pg_temp.compile(
  flow_slug, 'step', jsonb_build_array(pg_temp.map('a'), pg_temp.map('b'), pg_temp.step('c', 'a,b')), '{"timeout": 60}'
)
from unnest(array['f', 'other']) as flow_slug;
select pg_temp.compile('plain', 'flow', jsonb_build_array(pg_temp.step('a')));
select pg_temp.start('f', 'r', '[1, 2, 3]');
select pg_temp.start('other', 's', '[1, 2, 3]');
select pg_temp.start('plain', 't');
select is((select count(*) from pg_temp.claim('f', 'a', 1)), 1::bigint, 'of three tasks one is in progress');

create function pg_temp.waiting(flow_slug text)
returns text
language sql
as $$
  select string_agg(queue.line, ', ' order by queue.line)
  from (
    select message.queue_name || ' ' || count(*)
    from pg_temp.messages(waiting.flow_slug) as message
    group by message.queue_name
  ) as queue (line)
$$;

create temporary table others as
select pg_temp.picture('other') || pg_temp.picture('plain') as picture;

create function pg_temp.others_are_unchanged(description text)
returns text
language sql
as $$
  select is(pg_temp.picture('other') || pg_temp.picture('plain'), others.picture, others_are_unchanged.description) from others
$$;

-- One queue is purged.

select is(pgmq.purge_queue('f__a'), 3::bigint, 'one queue is purged');
select is(pg_temp.waiting('f'), 'f__b 3', 'the queue beside it keeps its messages');
select is(pg_temp.attempts('r', 'a'), 'started 1, queued 0, queued 0', 'tasks stay as they are');
select pg_temp.others_are_unchanged('other flows, whose steps have the same slugs, too');
select results_eq(
  $$select kind, flow_slug, queue_name, task_index from pgflow.stuck_work order by task_index$$,
  $$
    values
    ('task without a message', 'f', 'f__a', 0), ('task without a message', 'f', 'f__a', 1),
    ('task without a message', 'f', 'f__a', 2)
  $$,
  'each task that lost its message is in sight, and no other'
);
select is((select count(*) from pg_temp.claim('f', 'b', 1)), 1::bigint, 'the other step goes on');
select results_eq(
  $$select queue_name, action, count from pgflow.repair_queues('f')$$, $$values ('f__a', 'sent', 2::bigint)$$,
  'a repair sends the messages of queued tasks anew'
);
select is_empty($$select * from pgflow.repair_queues()$$, 'once');
select is(
  (select status from pgflow.complete_task(pg_temp.id('r'), 'a', 0, '1')), 'completed',
  'the task in progress is finished without its message'
);
select is(
  (select array_agg(input order by task_index) from pg_temp.claim('f', 'a', 10)), array['2', '3']::jsonb[],
  'the others are claimed, each once'
);

-- Messages of tasks in progress are purged, and then their worker dies.

select pgmq.purge_queue('f__a');
select is_empty($$select * from pgflow.repair_queues('f')$$, 'a message of a task in progress is not sent anew: nobody shall work on it twice');
select pg_temp.age('r', interval '1 day');
select is(pgflow.requeue_stalled_tasks(), 3, 'when their workers are lost, these tasks are queued again, as is one beside them');
select results_eq(
  $$select queue_name, action, count from pgflow.repair_queues('f')$$, $$values ('f__a', 'sent', 2::bigint)$$,
  'and then get messages'
);
select pg_temp.is_sound('f', 'all is as it was');

-- One queue is dropped.

select pg_temp.pass_time('f');
select pgmq.drop_queue('f__b');
select throws_ok(
  $$select pg_temp.start('f', 'refused', '[1]')$$, 'PF007', 'Queue "f__b" of flow "f" is gone from PGMQ.',
  'a run that would need it is not started'
);
select is((select count(*) from pgflow.runs), 3::bigint, 'and leaves nothing');
select is((select count(*) from pgmq.q_f__a), 2::bigint, 'the queue beside it is there');
select is((select attempt from pg_temp.claim('f', 'a', 1)), 2, 'and can be worked on');
select pg_temp.others_are_unchanged('as can those of other flows');
select results_eq(
  $$select queue_name, action, count from pgflow.repair_queues('f')$$,
  $$values ('f__b', 'made', 1::bigint), ('f__b', 'sent', 3)$$,
  'a repair makes that queue and no other'
);

-- Archives are emptied, rows of workers and functions deleted.

delete from pgmq.a_f__a;
select lives_ok($$delete from pgflow.workers where function_name = 'f_a'$$, 'the row of a worker with a task in progress can be deleted');
select lives_ok($$delete from pgflow.worker_functions where function_name = 'f_a'$$, 'so can that of its function');
select is(
  (select status from pgflow.complete_task(pg_temp.id('r'), 'a', 1, '2')), 'completed', 'and the task can still be finished'
);
select pgflow.register_worker(pg_temp.worker('f', 'a'), 'f_a', 'f', 'a');
select is(pg_temp.drain('f', '{"c": "end"}'), 5, 'a new worker does the rest');
select is(pg_temp.output('r'), '{"c": "end"}'::jsonb, 'to the end of the run');
select pg_temp.nothing_left('f', 'and leaves nothing behind');
select pg_temp.others_are_unchanged('and nothing beside it ever changed');

select * from finish();
rollback;
