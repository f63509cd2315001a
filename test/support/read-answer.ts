/** The stream of the tenant's events has no end. */
const ENDLESS = /^\/events(\?|$)/

/** The text of an answer; of an endless stream its first comment or event. `path` begins behind the base path. */
export async function readAnswer(path: string, response: Response): Promise<string> {
  if (!ENDLESS.test(path)) return response.text()
  let text = ''
  for await (const bytes of response.body ?? []) {
    text += Buffer.from(bytes).toString()
    if (text.includes('\n')) break // Which closes the connection.
  }
  return text
}
