begin;
set local client_min_messages to warning;
select plan(20);

select pgmq.create('Mixed_Case');
select pgmq.create('other');
select count(*) from pgmq.send_batch('Mixed_Case', array['{"n": 1}', '{"n": 2}', '{"n": 3}']::jsonb[], array['{"h": 1}', null, null]::jsonb[]);
select pgmq.send('other', '{"n": 1}');
select count(*) from pgmq.read('Mixed_Case', 0, 1);

create temporary table started as select clock_timestamp() as at;
create temporary table answer as select * from pgflow.set_vt_batch('Mixed_Case', array[3, 1], array[100, 5]);

select is(
  (
    select string_agg(attname || ' ' || format_type(atttypid, atttypmod), ', ' order by attnum)
    from pg_attribute
    where attrelid = 'answer'::regclass
      and attnum > 0
  ),
  'msg_id bigint, read_ct integer, enqueued_at timestamp with time zone, vt timestamp with time zone, message jsonb, headers jsonb',
  'set_vt_batch returns messages'
);
select results_eq(
  $$ select msg_id, read_ct, message, headers from answer order by msg_id $$,
  $$ values (1::bigint, 1, '{"n": 1}'::jsonb, '{"h": 1}'::jsonb), (3, 0, '{"n": 3}', null) $$,
  'those that were named'
);
select is(
  (
    select bool_and(vt between started.at + make_interval(secs => seconds) and clock_timestamp() + make_interval(secs => seconds))
    from answer
    inner join (values (1, 5), (3, 100)) as wanted (msg_id, seconds) using (msg_id)
    cross join started
  ),
  true,
  'each is visible again after its own offset'
);
select is_empty(
  $$
    select msg_id, vt, enqueued_at from answer
    except
    select msg_id, vt, enqueued_at from pgmq.q_mixed_case
  $$,
  'as the queue has it'
);
select is((select vt <= clock_timestamp() from pgmq.q_mixed_case where msg_id = 2), true, 'others keep their time');
select is((select vt <= clock_timestamp() from pgmq.q_other where msg_id = 1), true, 'and so does the same id on another queue');

select is(
  (select vt <= clock_timestamp() from pgflow.set_vt_batch('Mixed_Case', array[1], array[0])), true, 'an offset of 0 makes visible at once'
);
select is(
  (select vt < clock_timestamp() - interval '9 seconds' from pgflow.set_vt_batch('Mixed_Case', array[1], array[-10])), true, 'a negative one in the past'
);
select is(
  (select vt > clock_timestamp() + interval '60 years' from pgflow.set_vt_batch('Mixed_Case', array[1], array[2147483647])), true,
  'the largest one is no overflow'
);
select results_eq(
  $$ select msg_id from pgflow.set_vt_batch('Mixed_Case', array[99, 2, null], array[5, 5, 5]) $$,
  $$ values (2::bigint) $$,
  'ids that are not there are passed over'
);

-- Nothing to do.

select is_empty($$ select * from pgflow.set_vt_batch('Mixed_Case', '{}', '{}') $$, 'no ids: no rows');
select is_empty($$ select * from pgflow.set_vt_batch('Mixed_Case', null, array[1]) $$, 'NULL for the ids: no rows');
select is_empty($$ select * from pgflow.set_vt_batch('Mixed_Case', array[1], null) $$, 'NULL for the offsets: no rows');

-- Refusals.

select throws_ok(
  $$ select * from pgflow.set_vt_batch('Mixed_Case', array[1, 2], array[5]) $$,
  'PF019', 'msg_ids length (2) must equal vt_offsets length (1)', 'an offset for each id is needed'
);
select throws_ok(
  $$ select * from pgflow.set_vt_batch('Mixed_Case', array[1], array[5, 6]) $$,
  'PF019', 'msg_ids length (1) must equal vt_offsets length (2)', 'and no more than that'
);
select throws_ok(
  $$ select * from pgflow.set_vt_batch('Mixed_Case', array[1], '{}') $$,
  'PF019', 'msg_ids length (1) must equal vt_offsets length (0)', 'none is too few'
);
create temporary table canary (alive boolean);
select throws_ok(
  format('select * from pgflow.set_vt_batch(%L, array[1], array[5])', queue_name), null, null, 'a hostile name is data: ' || queue_name
)
from unnest(array['x; drop table canary; --', 'x" set vt = now(); --', 'missing']) as queue_name;
select is((select vt <= clock_timestamp() from pgmq.q_other where msg_id = 1), true, 'nothing was changed by these');

select * from finish();
rollback;
