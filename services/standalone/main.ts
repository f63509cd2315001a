import { holdDataDir } from '../wiring/data-dir.ts'
import { runProcess } from '../wiring/process.ts'
import { openStandalone } from './standalone.ts'

const RELEASE_MS = 1_000

/** The standalone form: a gateway and a worker in one process. `scripts/start` adds Node's flags and the compile cache. */
await runProcess('standalone', async (config, log) => {
  const dataDir = holdDataDir(config.dataDir, 'standalone')
  const { url, opsUrl, closers } = await openStandalone(config, log)
  dataDir.announce(url)
  const release = { name: 'data folder', deadlineMs: RELEASE_MS, close: async () => dataDir.release() }
  return {
    closers: [...closers, release],
    ready: { url, ops_url: opsUrl, model: config.model?.model, provider: config.model?.provider },
  }
})
