import { truncate } from '../../../kernel/text.ts'

/** Counted in code points, including the mark at the end of a shortened text. */
const MAX_CHARS = 300

/** Longer texts are cut before the search, because the patterns are slow on long ones. */
const MAX_SEARCHED_CHARS = 1_200

/** Matches keys, addresses, paths and long identifiers. */
const PRIVATE: RegExp[] = [
  /\b[a-z][a-z0-9+.-]*:\/\/\S+/gi,
  /\bbearer\s+\S+/gi,
  /\b(?:sk|pk|rk|gsk|xai|hf|key|api|org|proj)[-_](?=\S*[\d*])[\w*.-]{6,}|\bAIza[\w-]{10,}/gi,
  /\S+@\S+\.\w+/g,
  /\b\d{1,3}(?:\.\d{1,3}){3}(?::\d+)?\b/g,
  /\[?(?:[0-9a-f]{0,4}:){3,}[0-9a-f]{0,4}\]?(?::\d+)?/gi,
  /\b(?:localhost|(?:[a-z0-9-]+\.)+(?:com|net|org|io|ai|dev|app|cloud|local|internal|intranet|lan|corp|svc|test))\b(?::\d+)?\S*/gi,
  /(?:\/[\w.-]+){2,}/g,
  /\b(?=\w*\d)(?=\w*[a-z])\w{24,}\b/gi,
]

/** Returns the beginning of a provider's error message on one text line, with everything private replaced by `…` (D4.8). */
export function excerpt(message: string, apiKey: string): string {
  const withoutKey = apiKey.length > 3 ? message.replaceAll(apiKey, '…') : message
  const clean = PRIVATE.reduce(
    (text, pattern) => text.replace(pattern, '…'),
    truncate(withoutKey, MAX_SEARCHED_CHARS, ''),
  )
  return truncate(clean.replace(/[\p{Cc}\s]+/gu, ' ').trim(), MAX_CHARS - 1)
}
