create function pgflow.start_request()
returns table (base_url text, headers jsonb)
language plpgsql
stable
set search_path to pg_catalog, pg_temp
as $function$
declare
  secrets jsonb;
  project_id text;
  auth_key text;
begin
  if not exists (
    select
    from pg_proc as procedure
    inner join pg_namespace as namespace on namespace.oid = procedure.pronamespace
    where namespace.nspname = 'net'
      and procedure.proname = 'http_post'
  )
    or not pgflow.is_trusted_schema('net')
  then
    return;
  end if;

  if pgflow.is_local() then
    return query select 'http://kong:8000/functions/v1/', '{}'::jsonb;
    return;
  end if;

  if to_regclass('vault.decrypted_secrets') is null or not pgflow.is_trusted_schema('vault') then
    return;
  end if;

  execute
    'select jsonb_object_agg(secret.name, nullif(secret.decrypted_secret, '''')) '
    'from vault.decrypted_secrets as secret where secret.name = any($1)'
  into secrets
  using array['supabase_project_id', 'pgflow_auth_secret', 'supabase_service_role_key'];

  project_id := secrets ->> 'supabase_project_id';
  auth_key := coalesce(secrets ->> 'pgflow_auth_secret', secrets ->> 'supabase_service_role_key');

  if project_id is null or auth_key is null then
    return;
  end if;

  return query
  select
    format('https://%s.supabase.co/functions/v1/', project_id),
    jsonb_build_object('Content-Type', 'application/json', 'Authorization', 'Bearer ' || auth_key);
end
$function$;

comment on function pgflow.start_request() is
'Internal: where and with which headers worker functions are called over HTTP. No row when they can''t be: pg_net is not installed, a secret is missing from the vault, or the schema of either is not trusted.';
