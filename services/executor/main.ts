import { runProcess } from '../wiring/process.ts'

await runProcess('cluster', async (settings, log) => {
  const { openExecutorMember } = await import('./member.ts')
  return openExecutorMember(settings, log)
})
