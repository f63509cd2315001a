import { type OpenedStore, openStandaloneStore } from '../../services/wiring/open-store.ts'
import { createLog, type Log } from '../../shared/kernel/log.ts'
import { loadConfig } from '../../shared/platform/config/config.ts'
import type { Form } from '../../shared/platform/config/fields.ts'
import { groupSettings, type Settings } from '../../shared/platform/config/groups.ts'
import { useTempFolder } from '../support/temp-folder.ts'

export type Opening = {
  readonly dir: string
  settings(env?: Record<string, string>, form?: Form): Settings
  /** A store in a file of its own. */
  store(env?: Record<string, string>): Promise<OpenedStore>
  /** Takes the warnings and errors of a process. */
  log: Log
  /** Those of the test that runs. */
  readonly lines: readonly string[]
  /** Closes what a test has opened, after it, the last first. */
  closing(close: () => unknown): void
}

/** The settings and parts with which the tests of one `describe` open a process. The folder is the test's own. */
export function useOpening(): Opening {
  const lines: string[] = []
  const closers: (() => unknown)[] = []
  const dir = useTempFolder({ perTest: true })
  afterEach(async () => {
    for (const close of closers.splice(0).toReversed()) await close()
    lines.length = 0
  })
  const settings: Opening['settings'] = (env = {}, form = 'standalone') =>
    groupSettings(loadConfig({ DATA_DIR: dir.path, PORT: '0', OPS_PORT: '0', DRAIN_SECS: '0', ...env }, form))
  const closing = (close: () => unknown) => void closers.push(close)
  return {
    get dir() {
      return dir.path
    },
    lines,
    log: createLog({ level: 'warn', write: (line) => lines.push(line) }),
    settings,
    closing,
    async store(env) {
      const store = await openStandaloneStore(settings(env).store)
      closing(() => store.close())
      return store
    },
  }
}
