import { readFile } from 'node:fs/promises'
import type { Log } from '../../kernel/log.ts'
import { ConfigError } from '../../platform/config/config.ts'
import { type Ceilings, parseCeilings } from './ceilings.ts'

type Options = { file: string; log: Log; everyMs?: number }

const EVERY_MS = 2_000

/**
 * Reads the ceilings of a TENANT_LIMITS file, and again when it changes: a ConfigMap is replaced while processes run. A changed file
 * that cannot be used is logged, and the ceilings stay as they are. Throws `ConfigError` when the file cannot be used at the start.
 */
export async function openCeilingFile({
  file,
  log,
  everyMs = EVERY_MS,
}: Options): Promise<Ceilings & { close(): void }> {
  let seen = await contentOf(file)
  let ceilings = ceilingsIn(file, seen)
  let isReading = false
  const read = async () => {
    if (isReading) return
    isReading = true
    const found = await contentOf(file)
    isReading = false
    if (found.text === seen.text && found.failure === seen.failure) return
    seen = found
    try {
      ceilings = ceilingsIn(file, found)
      log.info('the ceilings of TENANT_LIMITS were read again', { file })
    } catch (cause) {
      log.error('the changed TENANT_LIMITS file cannot be used; the ceilings stay as they were', {
        cause: String(cause),
      })
    }
  }
  const timer = setInterval(() => void read(), everyMs).unref()
  return {
    ...{ of: (tenant) => ceilings.of(tenant), weightOf: (tenant) => ceilings.weightOf(tenant) },
    close: () => clearInterval(timer),
  }
}

type Content = { text?: string; failure?: string }

async function contentOf(file: string): Promise<Content> {
  try {
    return { text: await readFile(file, 'utf8') }
  } catch (cause) {
    return { failure: cause instanceof Error && 'code' in cause ? String(cause.code) : 'unknown' }
  }
}

function ceilingsIn(file: string, { text, failure }: Content): Ceilings {
  if (text === undefined) throw new ConfigError([`TENANT_LIMITS ${file} cannot be read (${failure})`])
  const ceilings = parseCeilings(text)
  if ('problems' in ceilings)
    throw new ConfigError(ceilings.problems.map((problem) => `TENANT_LIMITS ${file} ${problem}`))
  return ceilings
}
