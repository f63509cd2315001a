import { holdDataDir } from '../wiring/data-dir.ts'
import { runProcess } from '../wiring/process.ts'

const RELEASE_MS = 1_000
/** `scripts/start` sets it. A process that is started in another way prints log lines only. */
const isForPeople = process.env['ANNOUNCE_CONSOLE'] === 'true'

/** The standalone form: a gateway, a worker and an executor in one process. `scripts/start` adds Node's flags and the compile cache. */
await runProcess('standalone', async (settings, log) => {
  const dataDir = holdDataDir(settings.process.dataDir, 'standalone')
  const { openStandalone } = await import('./standalone.ts')
  const { url, consoleUrl, opsUrl, closers } = await openStandalone(settings, log)
  dataDir.announce(url)
  if (consoleUrl !== undefined && isForPeople) process.stderr.write(`Console: ${consoleUrl}\n`) // To stderr, because stdout contains the log.
  const { model } = settings.worker.models
  const release = { name: 'data folder', deadlineMs: RELEASE_MS, close: async () => dataDir.release() }
  return {
    closers: [...closers, release],
    ready: { url, ops_url: opsUrl, model: model?.model, provider: model?.provider },
  }
})
