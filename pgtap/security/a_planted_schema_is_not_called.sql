-- Whoever may create schemas can make one named like an optional part of a server. What stands in it is called only when the
-- owner of the schema has the engine's rights anyway.
begin;
\ir ../workers/helpers.psql

select plan(16);

create role stepq_stranger;
grant usage on schema pgflow to stepq_stranger;
select pg_temp.compile('f', 'flow', jsonb_build_array(pg_temp.step('a')));
select pgflow.track_worker_function('fn');
update pgflow.worker_functions set start_mode = 'http', last_invoked_at = null;

create schema realtime;
create schema net;
create schema vault;
create schema cron;
create table public.loot (what text);
create function realtime.send(payload jsonb, event text, topic text, private boolean)
returns void
language sql
as $$
  insert into public.loot values ('event')
$$;
create function net.http_post(url text, headers jsonb, body jsonb)
returns bigint
language sql
as $$
  insert into public.loot values ('request') returning 1
$$;
create function public.secret()
returns text
language sql
as $$
  insert into public.loot values ('secret') returning 'secret'
$$;
create view vault.decrypted_secrets as
select every.name, public.secret() as decrypted_secret
from (values ('supabase_project_id'), ('supabase_service_role_key')) as every (name);
create table cron.job (jobid bigint, jobname text, schedule text, command text);
create table cron.job_run_details (end_time timestamptz);
insert into cron.job_run_details values ('-infinity');
create function cron.unschedule(job_id bigint)
returns boolean
language sql
as $$
  insert into public.loot values ('job') returning true
$$;
create function cron.schedule(job_name text, schedule text, command text)
returns bigint
language sql
as $$
  insert into public.loot values ('job') returning 1
$$;

create function pg_temp.own_all(owner text)
returns void
language plpgsql
as $$
begin
  execute format('alter schema realtime owner to %I', owner);
  execute format('alter schema net owner to %I', owner);
  execute format('alter schema vault owner to %I', owner);
  execute format('alter schema cron owner to %I', owner);
end
$$;

create function pg_temp.loot()
returns text
language sql
as $$
  select coalesce(string_agg(distinct loot.what, ', ' order by loot.what), '') from public.loot
$$;

-- Of a stranger.
select pg_temp.own_all('stepq_stranger');
select set_config('pgflow.events', 'notify', true);
select is(pgflow.event_sink(), 'notify', 'events go where they went before');
select set_config('pgflow.events', '', true);
select is(pgflow.event_sink(), null, 'or nowhere');
select pg_temp.start('f', 'r');
select isnt(pgflow.start_flow_with_states('f', '{}'), null, 'the function that runs as its owner works');
select is(pg_temp.drain('f'), 2, 'and so do all others');
select results_eq(
  'select function_name, invoked from pgflow.ensure_workers()', $$values ('fn', false)$$, 'no function is called by HTTP'
);
select throws_ok(
  'select pgflow.setup_requeue_stalled_tasks_cron()', 'PF019',
  'Job "pgflow_requeue_stalled_tasks" can''t be scheduled: pg_cron is not installed in this database.', 'no job is made'
);
select throws_ok('select pgflow.cleanup_ensure_workers_logs()', 'PF019', null, 'no log is cleaned up');
select is((select count(*) from cron.job_run_details), 1::bigint, 'nothing is deleted from it');
select is(pg_temp.loot(), '', 'what the stranger planted never ran');

-- Of pgflow's owner, or of one who can become that role.
select pg_temp.own_all((select nspowner::regrole::text from pg_namespace where nspname = 'pgflow'));
select is(pgflow.event_sink(), 'realtime', 'in a schema of the owner of pgflow it is called');
select pg_temp.start('f', 'q');
select is(pg_temp.loot(), 'event', 'as on a server that has it');

create role stepq_owner;
create function pg_temp.trust_after(statement text)
returns text
language plpgsql
as $$
declare
  found_sink text;
begin
  execute 'alter schema pgflow owner to stepq_owner';
  execute statement;
  select pgflow.event_sink() into found_sink;
  raise exception using errcode = 'ZZ999', message = coalesce(found_sink, 'nowhere');
exception
  when sqlstate 'ZZ999' then
    return sqlerrm;
end
$$;
select is(
  pg_temp.trust_after('alter schema realtime owner to stepq_stranger'), 'nowhere', 'another role is nobody special'
);
select is(
  pg_temp.trust_after('alter schema realtime owner to stepq_stranger; grant stepq_stranger to stepq_owner'), 'nowhere',
  'nor one whose rights the owner of pgflow has'
);
select is(
  pg_temp.trust_after('alter schema realtime owner to stepq_stranger; grant stepq_owner to stepq_stranger'), 'realtime',
  'a member of the role that owns pgflow is trusted'
);
select is(pg_temp.trust_after('alter schema realtime owner to stepq_owner'), 'realtime', 'and that role itself');
select is(pgflow.is_trusted_schema('nowhere'), false, 'a schema that is not there is not');

select * from finish();
rollback;
