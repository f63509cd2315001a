import { runProcess } from '../wiring/process.ts'

await runProcess('cluster', async (settings, log) => {
  const { openGatewayMember } = await import('./member.ts')
  return openGatewayMember(settings, log)
})
