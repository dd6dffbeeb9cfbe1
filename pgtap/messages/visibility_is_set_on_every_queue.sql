begin;
set local client_min_messages to warning;
select plan(8);

select pgmq.create('a'), pgmq.create('b');
select count(*) from unnest(array['a', 'b']) as queue_name cross join lateral pgmq.send_batch(queue_name, array['1', '2', '3']::jsonb[]);

create function pg_temp.show(names text[], times timestamptz[], reads int default 0)
returns void
language sql
as $$
  select pgflow.set_visibility(
    array(
      select row(split_part(name, ':', 1), split_part(name, ':', 2)::bigint)::pgflow.message_ref
      from unnest(names) with ordinality as named (name, place)
      order by place
    ),
    times,
    reads
  )
$$;

create view pg_temp.message as
select 'a' as queue_name, msg_id, vt, read_ct, last_read_at from pgmq.q_a
union all
select 'b', msg_id, vt, read_ct, last_read_at from pgmq.q_b;

select pg_temp.show(array['b:3', 'a:1', 'b:1'], array['2031-01-01', '2032-02-02', '2033-03-03']::timestamptz[]);
select results_eq(
  $$ select queue_name, msg_id, vt::date from pg_temp.message where vt > clock_timestamp() + interval '1 year' order by 1, 2 $$,
  $$ values ('a', 1::bigint, '2032-02-02'::date), ('b', 1, '2033-03-03'), ('b', 3, '2031-01-01') $$,
  'each message gets its own time, on whichever queue it is'
);
select is_empty($$ select * from pg_temp.message where read_ct <> 0 or last_read_at is not null $$, 'that is no read');

select pg_temp.show(array['b:3', 'a:2'], array['2031-01-01', '2032-02-02']::timestamptz[], 1);
select results_eq(
  $$ select queue_name, msg_id, read_ct from pg_temp.message where read_ct > 0 or last_read_at is not null order by 1, 2 $$,
  $$ values ('a', 2::bigint, 1), ('b', 3, 1) $$,
  'unless the caller says that it was one'
);
select is(
  (select bool_and(last_read_at between now() and clock_timestamp()) from pg_temp.message where read_ct = 1), true, 'then the time of it is kept too'
);

-- What is not there.

create temporary table before as select * from pg_temp.message;
select lives_ok(
  $$ select pg_temp.show(array['a:9', 'nowhere:1'], array['2031-01-01', '2031-01-01']::timestamptz[]) $$, 'messages and queues that are gone are passed over'
);
select lives_ok($$ select pg_temp.show('{}', '{}') $$, 'no messages: nothing to do');
select lives_ok($$ select pgflow.set_visibility(null, null) $$, 'nor for NULL');
select results_eq('select * from pg_temp.message order by 1, 2', 'select * from before order by 1, 2', 'nothing was changed by these');

select * from finish();
rollback;
