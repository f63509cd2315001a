/** Describes a waiting run's place for a person: "Waiting, place 3, about 20 s". */
export function placeText(
  { place, expected_start: expected }: { place: number; expected_start: string | null },
  now: number = Date.now(),
): string {
  const secs = expected === null ? undefined : Math.max(1, Math.round((Date.parse(expected) - now) / 1_000))
  const about = secs === undefined ? '' : secs < 120 ? `, about ${secs} s` : `, about ${Math.round(secs / 60)} min`
  return `Waiting, place ${place}${about}`
}
