begin;
set local client_min_messages to warning;
select plan(14);

select pgmq.create('a'), pgmq.create('b'), pgmq.create('c');
select count(*) from unnest(array['a', 'b', 'c']) as queue_name cross join lateral pgmq.send_batch(queue_name, array['1', '2', '3']::jsonb[]);
update pgmq.q_a set headers = '{"h": 1}', read_ct = 4, last_read_at = '2026-01-01' where msg_id = 1;

create function pg_temp.archive(variadic names text[])
returns void
language sql
as $$
  select pgflow.archive_messages(
    array(
      select row(split_part(name, ':', 1), split_part(name, ':', 2)::bigint)::pgflow.message_ref from unnest(names) as name
    )
  )
$$;

create function pg_temp.ids(relation text)
returns bigint[]
language plpgsql
as $$
declare
  ids bigint[];
begin
  execute format('select array_agg(msg_id order by msg_id) from pgmq.%I', relation) into ids;
  return ids;
end
$$;

create temporary table original as select * from pgmq.q_a where msg_id = 1;
select pg_temp.archive('b:2', 'a:3', 'a:1', 'b:2');

select is(pg_temp.ids('q_a'), array[2]::bigint[], 'archived messages are gone from their queue');
select is(pg_temp.ids('a_a'), array[1, 3]::bigint[], 'and in the archive of it');
select is(pg_temp.ids('q_b'), array[1, 3]::bigint[], 'each id of its own queue');
select is(pg_temp.ids('a_b'), array[2]::bigint[], 'a repeated one once');
select is(pg_temp.ids('q_c'), array[1, 2, 3]::bigint[], 'other queues keep theirs');
select results_eq(
  $$ select msg_id, read_ct, enqueued_at, last_read_at, vt, message, headers from pgmq.a_a where msg_id = 1 $$,
  $$ select msg_id, read_ct, enqueued_at, last_read_at, vt, message, headers from original $$,
  'a message goes with all that belongs to it'
);
select is((select archived_at between now() and clock_timestamp() from pgmq.a_a where msg_id = 1), true, 'and the time');

-- Again.

select pg_temp.archive('a:1', 'a:3', 'a:77', 'c:2');
select is(pg_temp.ids('a_a'), array[1, 3]::bigint[], 'messages that are gone already, or never were, are passed over');
select is(pg_temp.ids('a_c'), array[2]::bigint[], 'the others of the call are archived');

-- An id that the archive has already.

insert into pgmq.q_a (msg_id, vt, message, read_ct)
overriding system value
values (1, clock_timestamp(), '"again"', 9);
select lives_ok($$ select pg_temp.archive('a:1') $$, 'an id that the archive has already is no error');
select results_eq(
  $$ select read_ct, message from pgmq.a_a where msg_id = 1 $$, $$ values (9, '"again"'::jsonb) $$, 'the archive has it as it was last'
);

-- A queue that somebody dropped.

select pgmq.drop_queue('b');
select lives_ok($$ select pg_temp.archive('b:1', 'c:1', 'nowhere:5', null) $$, 'a queue that is gone has no messages left');
select is(pg_temp.ids('a_c'), array[1, 2]::bigint[], 'the others of the call are archived');
select lives_ok($$ select pgflow.archive_messages('{}'), pgflow.archive_messages(null) $$, 'no messages: nothing to do');

select * from finish();
rollback;
