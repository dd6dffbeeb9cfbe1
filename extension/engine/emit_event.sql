create function pgflow.emit_event(event text, payload jsonb)
returns void
language plpgsql
set search_path to pg_catalog, pg_temp
as $function$
begin
  case pgflow.event_sink()
    when 'realtime' then
      execute 'select realtime.send($1, $2, $3, false)'
      using payload, event, 'pgflow:run:' || (payload ->> 'run_id');
    when 'notify' then
      -- Never the output or a message: a notification over 8,000 bytes would make the completion fail.
      perform pg_notify(
        'pgflow',
        jsonb_strip_nulls(
          jsonb_build_object(
            'event', event,
            'run_id', payload -> 'run_id',
            'step_slug', payload -> 'step_slug',
            'status', payload -> 'status'
          )
        )::text
      );
    else
      null;
  end case;
end
$function$;

comment on function pgflow.emit_event(text, jsonb) is
'Hands one event to realtime.send where that exists in a trusted schema (topic pgflow:run:<run_id>), else to the channel pgflow where the setting pgflow.events is notify, else nowhere. Payloads and names are those of pgflow 0.14.';
