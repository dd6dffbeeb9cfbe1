-- Order, duplicates, nulls, nothing at all, a great many.
begin;
\ir helpers.psql

select plan(15);

select pg_temp.compile('f', 'step', jsonb_build_array(pg_temp.map('a'), pg_temp.map('b')));
-- Queues count alike; other ids on queue f__b make it plain which ones are meant.
alter table pgmq.q_f__b alter column msg_id restart with 50001;
select pg_temp.start('f', 'r', (select jsonb_agg(number) from generate_series(0, 9999) as number));

create temporary view before_nothing as
select pg_temp.picture('f') as picture;
create temporary table picture_before as
select * from before_nothing;

select is_empty($$select * from pg_temp.claim_messages('f', 'a', null)$$, 'a null array gives nothing');
select is_empty($$select * from pg_temp.claim_messages('f', 'a', '{}')$$, 'an empty array gives nothing');
select is_empty(
  $$select * from pg_temp.claim_messages('f', 'a', array[null]::bigint[])$$,
  'an array of null gives nothing'
);
select results_eq('select * from before_nothing', 'select * from picture_before', 'and changes nothing');

select results_eq(
  $$
    select msg_id, outcome, attempt, input
    from pg_temp.claim_messages('f', 'a', array[5, null, 3, 5, 20000, 3, 4, null])
  $$,
  $$
    values
    (5::bigint, 'claimed', 1, '4'::jsonb),
    (3, 'claimed', 1, '2'),
    (20000, 'gone', null, null),
    (4, 'claimed', 1, '3')
  $$,
  'one row for every distinct id in the order passed, with one attempt'
);

select results_eq(
  $$
    select task_index, attempts_count
    from pgflow.step_tasks
    where attempts_count > 0
    order by task_index
  $$,
  'values (2, 1), (3, 1), (4, 1)',
  'nothing else was claimed'
);

select is(pg_temp.msg('r', 'b', 0), 50001::bigint, 'the other step has messages of its own');
select results_eq(
  $$select msg_id, outcome from pg_temp.claim_messages('f', 'a', array[50001, 50002])$$,
  $$values (50001::bigint, 'gone'), (50002, 'gone')$$,
  'ids of another queue are gone on this one'
);
select is(
  (
    select max(message_task.attempts_count)
    from pgflow.step_tasks as message_task
    where message_task.step_slug = 'b'
  ),
  0,
  'and their tasks untouched'
);

create temporary table big_batch as
select
  claimed.*,
  row_number() over () as position
from pg_temp.claim_messages('f', 'a', array(select id from generate_series(10000, 1, -1) as id)) as claimed;

select is((select count(*) from big_batch), 10000::bigint, 'ten thousand ids give ten thousand rows');
select is_empty('select * from big_batch where msg_id <> 10001 - position', 'in the order passed');
select results_eq(
  'select outcome, count(*) from big_batch group by outcome order by outcome',
  $$values ('claimed', 9997::bigint), ('deferred', 3)$$,
  'each claimed, but for those that were started before'
);
select is_empty(
  $$select * from big_batch where outcome = 'claimed' and (input <> to_jsonb(task_index) or task_index <> msg_id - 1)$$,
  'each with its own element of the map'
);
select is(
  (
    select array_agg(distinct task.attempts_count)
    from pgflow.step_tasks as task
    where task.step_slug = 'a'
  ),
  array[1],
  'each with one attempt'
);
select is_empty(
  $$
    select message.msg_id
    from pgmq.q_f__a as message
    inner join pgflow.step_tasks as task
      on task.queue_name = 'f__a'
      and task.message_id = message.msg_id
    where message.vt is distinct from task.started_at + interval '90 s'
  $$,
  'each hidden until its boundary'
);

select *
from finish();
rollback;
