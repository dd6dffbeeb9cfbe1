create function pgflow.event_sink()
returns text
language sql
stable
begin atomic
  select
    case
      -- Asked first, since it is cheap: most servers have no such schema.
      when to_regnamespace('realtime') is not null
        and to_regprocedure('realtime.send(jsonb, text, text, boolean)') is not null
        and pgflow.is_trusted_schema('realtime') then 'realtime'
      when current_setting('pgflow.events', true) = 'notify' then 'notify'
    end;
end;

comment on function pgflow.event_sink() is
'Where events go: realtime (realtime.send exists, in a schema that is_trusted_schema()), notify (the setting pgflow.events is notify), or null: nowhere, and then no event is built at all.';
