const MAX_CHARS = 180

/** Prints one line for a check. A broken one makes the script fail. */
export function report(isOk: boolean, text: string): void {
  const line = text.replaceAll(/\s+/g, ' ')
  console.log(`${isOk ? 'ok     ' : 'FAILED '} ${line.length > MAX_CHARS ? `${line.slice(0, MAX_CHARS)}…` : line}`)
  if (!isOk) process.exitCode = 1
}
