-- ensure_workers() starts what is due. pg_net and the vault are not to be had here: stand-ins record what they are asked.
begin;
\ir helpers.psql

select plan(22);

create function pg_temp.due()
returns text
language sql
as $$
  select coalesce(
    string_agg(function_name || case when invoked then '' else ' (not invoked)' end, ', ' order by function_name),
    'nothing'
  )
  from pgflow.ensure_workers()
$$;

insert into pgflow.worker_functions (function_name, enabled, start_mode, last_invoked_at)
values
('never-called', true, 'http', null),
('called-long-ago', true, 'http', now() - interval '1 hour'),
('called-just-now', true, 'http', clock_timestamp()),
('disabled', false, 'http', null),
('starts-itself', true, 'process', null);

create temporary table functions_before as
select * from pgflow.worker_functions;

-- Without pg_net.
select is(
  pg_temp.due(), 'called-long-ago (not invoked), never-called (not invoked)', 'without pg_net what is due is named, not called'
);
select results_eq(
  'select * from pgflow.worker_functions order by function_name',
  'select * from functions_before order by function_name',
  'and nothing is recorded'
);

create schema net;
create table net.request (id bigserial, url text, headers jsonb, body jsonb);
create function net.http_post(url text, body jsonb default '{}', params jsonb default '{}', headers jsonb default '{"Content-Type": "application/json"}', timeout_milliseconds int default 5000)
returns bigint
language sql
as $$
  insert into net.request (url, headers, body) values (http_post.url, http_post.headers, http_post.body) returning id
$$;

-- Without secrets.
select is(
  pg_temp.due(), 'called-long-ago (not invoked), never-called (not invoked)', 'without a vault nothing is called'
);
create schema vault;
create table vault.decrypted_secrets (name text, decrypted_secret text);
insert into vault.decrypted_secrets values ('supabase_project_id', 'project'), ('pgflow_auth_secret', '');
select is(
  pg_temp.due(), 'called-long-ago (not invoked), never-called (not invoked)', 'an empty secret counts as missing'
);
select is_empty('select * from net.request', 'so far no call was made');
select results_eq(
  'select * from pgflow.worker_functions order by function_name',
  'select * from functions_before order by function_name',
  'nor recorded'
);

-- With the general secret, then with pgflow's own.
insert into vault.decrypted_secrets values ('supabase_service_role_key', 'general');
select results_eq(
  'select function_name, invoked, request_id is not null from pgflow.ensure_workers() order by function_name',
  $$values ('called-long-ago', true, true), ('never-called', true, true)$$,
  'due functions are called'
);
select results_eq(
  'select url, headers, body from net.request order by url',
  $$
    values
    (
      'https://project.supabase.co/functions/v1/called-long-ago',
      '{"Content-Type": "application/json", "Authorization": "Bearer general"}'::jsonb,
      '{}'::jsonb
    ),
    (
      'https://project.supabase.co/functions/v1/never-called',
      '{"Content-Type": "application/json", "Authorization": "Bearer general"}',
      '{}'
    )
  $$,
  'each once, at its own address'
);
select is(pg_temp.due(), 'nothing', 'and are left alone for their debounce');
select results_eq(
  $$
    select now_known.function_name
    from pgflow.worker_functions as now_known
    inner join functions_before as known using (function_name)
    where now_known.last_invoked_at is distinct from known.last_invoked_at
    order by 1
  $$,
  $$values ('called-long-ago'), ('never-called')$$,
  'only those that were called have a new time'
);

update vault.decrypted_secrets set decrypted_secret = 'own' where name = 'pgflow_auth_secret';
delete from net.request;
update pgflow.worker_functions set last_invoked_at = now() - interval '1 hour' where function_name = 'never-called';
select is(pg_temp.due(), 'never-called', 'past its debounce a function is due again');
select is(
  (select headers ->> 'Authorization' from net.request), 'Bearer own', 'the secret of pgflow goes before the general one'
);

-- A live worker.
select pg_temp.plain_flow('plain', 'a');
update pgflow.worker_functions set last_invoked_at = now() - interval '1 hour', debounce = '10 minutes' where function_name = 'never-called';
select pg_temp.old_worker('w', 'plain', 'never-called');
select is(pg_temp.due(), 'nothing', 'a function with a live worker is not called');
select pg_temp.silence('w', '9 minutes');
select is(pg_temp.due(), 'nothing', 'live within the debounce, however long that is');
select pg_temp.silence('w', '11 minutes');
select is(pg_temp.due(), 'never-called', 'a silent one does not count');
update pgflow.worker_functions set last_invoked_at = now() - interval '1 hour' where function_name = 'never-called';
select pg_temp.silence('w', '0 s');
update pgflow.workers set deprecated_at = now();
select is(pg_temp.due(), 'never-called', 'nor a deprecated one');
update pgflow.worker_functions set last_invoked_at = now() - interval '1 hour' where function_name = 'never-called';
update pgflow.workers set deprecated_at = null, stopped_at = now();
select is(pg_temp.due(), 'never-called', 'nor one that has stopped');

-- The local CLI.
delete from net.request;
delete from vault.decrypted_secrets;
set local "app.settings.jwt_secret" = 'super-secret-jwt-token-with-at-least-32-characters-long';
select is(
  pg_temp.due(), 'called-just-now, called-long-ago, never-called', 'in local mode every enabled one is due, at once and always'
);
select results_eq(
  'select url, headers from net.request order by url limit 1',
  $$values ('http://kong:8000/functions/v1/called-just-now', '{}'::jsonb)$$,
  'and called through the local gateway, without any secret'
);
set local "app.settings.jwt_secret" = 'another secret';
select is(pg_temp.due(), 'nothing', 'any other secret is not local');

-- Registration makes process functions.
select pg_temp.step_flow('f', 'a');
select pgflow.register_worker(pg_temp.id('p'), 'process-worker', 'f', 'a');
select pgflow.mark_worker_stopped(pg_temp.id('p'));
set local "app.settings.jwt_secret" = 'super-secret-jwt-token-with-at-least-32-characters-long';
select unalike(pg_temp.due(), '%process-worker%', 'what starts itself is never called');
select pgflow.register_worker(pg_temp.id('q'), 'process-worker', 'f', 'a', 'http');
select alike(pg_temp.due(), '%process-worker%', 'until it says that it wants to be');

select * from finish();
rollback;
