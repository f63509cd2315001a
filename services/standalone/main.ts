import { runProcess } from '../wiring/process.ts'
import { openStandalone } from './standalone.ts'

/** The standalone form: a gateway and a worker in one process. `scripts/start` adds Node's flags and the compile cache. */
await runProcess('standalone', async (config, log) => {
  const { url, opsUrl, closers } = await openStandalone(config, log)
  return { closers, ready: { url, ops_url: opsUrl, model: config.model?.model, provider: config.model?.provider } }
})
