const MAX_CHARS = 300

/** Whatever looks like a key, an address or a place in somebody's network. */
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

/** A provider's own words, short and cleaned, for the caller whose request it rejected. */
export function excerpt(words: string, apiKey: string): string {
  const known = apiKey.length > 3 ? words.replaceAll(apiKey, '…') : words
  const clean = PRIVATE.reduce((text, pattern) => text.replace(pattern, '…'), known.slice(0, 4 * MAX_CHARS))
  const line = clean.replace(/[\p{Cc}\s]+/gu, ' ').trim()
  return line.length > MAX_CHARS ? `${line.slice(0, MAX_CHARS - 1)}…` : line
}
