create function pgflow.is_local()
returns boolean
language sql
stable
parallel safe
set search_path to pg_catalog, pg_temp
as $function$
  -- The secret that every local Supabase CLI uses, and no deployed project does.
  select coalesce(
    current_setting('app.settings.jwt_secret', true) = 'super-secret-jwt-token-with-at-least-32-characters-long',
    false
  );
$function$;

comment on function pgflow.is_local() is
'Whether this is a developer''s local Supabase: true only when the setting app.settings.jwt_secret is the well-known one of the local CLI. There, a changed shape is recompiled at the cost of its data.';
