-- CREATE EXTENSION doesn't check function bodies: a misspelt column would only show when the function is called.
begin;
\ir ../helpers.psql

select plan(1);

create function pg_temp.body_faults()
returns table (function text, fault text)
language plpgsql
as $$
declare
  definition record;
begin
  for definition in
    select procedure.oid::regprocedure::text as name, pg_get_functiondef(procedure.oid) as statement
    from pg_proc as procedure
    where procedure.pronamespace = 'pgflow'::regnamespace
  loop
    begin
      execute definition.statement;
    exception
      when others then
        function := definition.name;
        fault := sqlerrm;
        return next;
    end;
  end loop;

  -- That resolves what SQL functions name. In PL/pgSQL only plpgsql_check does, where it can be had.
  if exists (select from pg_available_extensions where name = 'plpgsql_check') then
    create extension if not exists plpgsql_check;
    return query execute
      $sql$
        select procedure.oid::regprocedure::text, format('line %s: %s', finding.lineno, finding.message)
        from pg_proc as procedure
        inner join pg_language as language on language.oid = procedure.prolang
        cross join lateral plpgsql_check_function_tb(
          procedure.oid,
          coalesce(
            (select trigger.tgrelid from pg_trigger as trigger where trigger.tgfoid = procedure.oid limit 1), 0
          )
        ) as finding
        where procedure.pronamespace = 'pgflow'::regnamespace
          and language.lanname = 'plpgsql'
          and finding.level = 'error'
          -- Other extensions, which are called only where they are.
          and finding.message !~ '^(schema|relation) "(cron|net|realtime|vault)[".]'
      $sql$;
  end if;
end
$$;
select is_empty('select * from pg_temp.body_faults()', 'no function names what is not there');

select * from finish();
rollback;
