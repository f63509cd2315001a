import { runProcess } from '../wiring/process.ts'

await runProcess('cluster', async (settings, log) => {
  const { openWorkerMember } = await import('./member.ts')
  return openWorkerMember(settings, log)
})
