/** An address as whoever sends a request reads it, in three parts. `isAsWritten`: it was written like this. */
export type ReadAddress = { before: string; host: string; after: string; isAsWritten: boolean }

/** `undefined` for a text that is no address. */
export function readAddress(typed: string): ReadAddress | undefined {
  const url = URL.parse(typed)
  if (!url) return undefined
  const { username, password } = url
  const user = username === '' && password === '' ? '' : `${username}${password === '' ? '' : `:${password}`}@`
  return {
    before: `${url.protocol}${url.href.startsWith(`${url.protocol}//`) ? '//' : ''}${user}`,
    host: url.host,
    after: url.pathname + url.search + url.hash,
    isAsWritten: url.href === typed,
  }
}
