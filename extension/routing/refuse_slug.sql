create function pgflow.refuse_slug(subject text, slug text, place text default '')
returns void
language plpgsql
immutable
set search_path to pg_catalog, pg_temp
as $function$
begin
  raise exception using
    errcode = 'PF008',
    message = format(
      '%s slug %s%s is not valid.',
      refuse_slug.subject,
      coalesce(to_json(refuse_slug.slug)::text, 'null'),
      refuse_slug.place
    ),
    detail = format('It has %s characters.', coalesce(length(refuse_slug.slug), 0)),
    hint = 'Use 1 to 128 letters, digits or underscores, not starting with a digit; "run" is reserved.';
end
$function$;

comment on function pgflow.refuse_slug(text, text, text) is
'Internal: raises PF008 for a slug that breaks the rules. subject: Flow or Step; place: where the slug stands, as the rest of a sentence.';
