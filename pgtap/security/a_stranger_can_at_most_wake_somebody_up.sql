-- A role without any right on the engine: its notifications carry no work, its rows and messages don't get in, and what it
-- names like something of the engine's is not taken for it.
begin;
\ir ../helpers.psql

select plan(31);

select pg_temp.compile('f', 'step', jsonb_build_array(pg_temp.map('a'), pg_temp.step('b', 'a')));
select pg_temp.compile('g', 'flow', jsonb_build_array(pg_temp.step('a')));
select pg_temp.start('f', 'r', '[1, 2]');
select pg_temp.start('g', 's');
select count(*) from pg_temp.claim('f', 'a', 1);
select set_config('pgflow.events', 'notify', true);
select pgmq.enable_notify_insert('f__a');

create role stepq_stranger;
grant create, usage on schema public to stepq_stranger;

create function pg_temp.as_stranger(statement text)
returns text
language plpgsql
as $$
begin
  begin
    set local role stepq_stranger;
    execute statement;
  exception
    when others then
      return sqlstate;
  end;

  reset role;
  return 'done';
end
$$;

create temporary table before as
select
  pg_temp.picture('f') || pg_temp.picture('g') as picture,
  (select jsonb_agg(to_jsonb(worker) order by worker.worker_id) from pgflow.workers as worker) as workers,
  (select jsonb_agg(to_jsonb(known) order by known.function_name) from pgflow.worker_functions as known) as functions;

-- Notifications. Nobody in the database listens; a client that does is woken up and has to look for itself.

select is(
  pg_temp.as_stranger(format('select pg_notify(%L, %L)', forged.channel, forged.payload)), 'done',
  format('a stranger may notify %s: %s', forged.channel, left(forged.payload, 60))
)
from (
  values
  ('pgflow', '{"event": "run:completed", "run_id": "' || pg_temp.id('r') || '", "status": "completed"}'),
  ('pgflow', '{"event": "step:failed", "run_id": "' || pg_temp.id('r') || '", "step_slug": "a", "status": "failed"}'),
  ('pgflow', 'no JSON at all'),
  ('pgflow', ''),
  ('pgflow', repeat('x', 7999)),
  ('pgmq.q_f__a.INSERT', ''),
  ('pgmq.q_f__a.INSERT', '''; drop table pgflow.runs; --')
) as forged (channel, payload);
select is(
  pg_temp.picture('f') || pg_temp.picture('g'), before.picture, 'no run, task or message is changed by any of them'
) from before;

-- Messages and rows.

select is(pg_temp.as_stranger(attempt.statement), '42501', 'refused: ' || attempt.statement)
from (
  values
  ($$select pgmq.send('f__a', '{"run_id": null}')$$),
  ($$insert into pgmq.q_f__a (vt, message) values (now(), '{}')$$),
  ($$update pgmq.q_f__a set vt = now()$$),
  ($$delete from pgmq.q_f__a$$),
  ($$insert into pgmq.a_f__a (msg_id, vt, message) values (1, now(), '{}')$$),
  ($$select nextval('pgmq.q_f__a_msg_id_seq')$$),
  ($$select pgmq.drop_queue('f__a')$$),
  ($$select pgmq.create('f__c')$$),
  ($$insert into pgflow.workers (worker_id, queue_name, function_name) values (gen_random_uuid(), 'f__a', 'f_a')$$),
  ($$update pgflow.worker_functions set enabled = false$$),
  ($$update pgflow.step_tasks set status = 'completed'$$),
  ($$create table pgflow.intruder (one int)$$),
  ($$create function pgflow.intruder() returns int language sql return 1$$),
  ($$create table pgmq.q_f__c (msg_id bigint)$$)
) as attempt (statement);
select results_eq(
  $$
    select
      pg_temp.picture('f') || pg_temp.picture('g'),
      (select jsonb_agg(to_jsonb(worker) order by worker.worker_id) from pgflow.workers as worker),
      (select jsonb_agg(to_jsonb(known) order by known.function_name) from pgflow.worker_functions as known)
  $$,
  'select * from before', 'and nothing has changed'
);

-- Things of the engine's names, first on the search path of whoever works.

select is(pg_temp.as_stranger(decoy.statement), 'done', 'a stranger makes ' || decoy.what)
from (
  values
  ('tables', 'create table public.runs (run_id uuid); create table public.step_tasks (run_id uuid); create table public.q_f__a (msg_id bigint)'),
  ('functions', 'create function public.lower(text) returns text language plpgsql as $$begin raise ''taken in''; end$$;'
  'create function public.clock_timestamp() returns timestamptz language plpgsql as $$begin raise ''taken in''; end$$;'
  'create function public.jsonb_typeof(jsonb) returns text language plpgsql as $$begin raise ''taken in''; end$$;'
  'create function public.to_regclass(text) returns regclass language plpgsql as $$begin raise ''taken in''; end$$;'
  'create function public.task_is_active(text) returns boolean language plpgsql as $$begin raise ''taken in''; end$$;'),
  ('operators', 'create function public.never(text, text) returns boolean language plpgsql as $$begin raise ''taken in''; end$$;'
  'create operator public.= (function = public.never, leftarg = text, rightarg = text);'
  'create operator public.|| (function = public.never, leftarg = text, rightarg = text);')
) as decoy (what, statement);
grant execute on all functions in schema public to public;

create function pg_temp.careless()
returns text
language plpgsql
set search_path to public, pg_catalog
as $$
begin
  return lower('A');
end
$$;
select throws_ok('select pg_temp.careless()', 'P0001', 'taken in', 'a function that relies on the search path is taken in');

create function pg_temp.work_with_decoys()
returns text
language plpgsql
-- The decoys come before the server's own.
set search_path to public, pg_catalog, pgflow, pgmq
as $$
declare
  task record;
  statuses text[] := '{}';
begin
  for task in select * from pgflow.poll_tasks('00000000-0000-0000-0000-000000000001'::uuid, 10, 0)
  loop
    statuses := array_append(
      statuses, (select done.status from pgflow.complete_task(task.run_id, task.step_slug, task.task_index, '1') as done)
    );
  end loop;

  perform pgflow.fail_task(task_in_hand.run_id, task_in_hand.step_slug, task_in_hand.task_index, 'broken')
  from pgflow.step_tasks as task_in_hand
  where task_in_hand.started_at is not null and task_in_hand.completed_at is null;
  perform pgflow.requeue_stalled_tasks();
  perform count(*) from pgflow.stuck_work;
  perform count(*) from pgflow.queue_coverage;
  perform count(*) from pgflow.check_integrity();
  perform pgflow.start_flow('g', '{}');
  perform pgflow.ensure_flow_compiled('h', '{"steps": [{"slug": "A"}]}', false, 'step');
  perform pgflow.delete_flow_and_data('h');
  return array_to_string(statuses, ', ');
end
$$;
select pgflow.register_worker('00000000-0000-0000-0000-000000000001', 'fn', 'g');
select is(pg_temp.work_with_decoys(), 'completed', 'whoever has them on the search path works with the server''s own');
select is_empty('select * from pgflow.check_integrity()', 'and all is sound');
select is(pg_temp.run('s'), 'completed, 0 left', 'work was done');
select is(
  (select array_agg(status order by task_index) from pgflow.step_tasks where run_id = pg_temp.id('r')), array['queued', 'queued'],
  'and given back'
);

select * from finish();
rollback;
