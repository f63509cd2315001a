import { ensureProgram } from './local-services/debian-programs.ts'
import { ensureHelm } from './local-services/helm.ts'
import { ensureKubectl } from './local-services/kubectl.ts'
import { ensureMongod } from './local-services/mongo-server.ts'
import { ensurePythonClient } from './local-services/python-client.ts'
import { ensureRedisServer } from './local-services/redis-server.ts'
import { ensureS3 } from './local-services/s3.ts'

// For the shell scripts: `node scripts/local-services.ts ensure redis` installs the named services where they are missing. It
// exits with 0 when each can be started.
const ENSURE: Record<string, (say: (line: string) => void) => Promise<unknown>> = {
  redis: ensureRedisServer,
  mongo: ensureMongod,
  nginx: (say) => ensureProgram('nginx', say),
  haproxy: (say) => ensureProgram('haproxy', say),
  tini: (say) => ensureProgram('tini', say),
  curl: (say) => ensureProgram('curl', say),
  s3: ensureS3,
  kubectl: ensureKubectl,
  helm: ensureHelm,
  'python-client': ensurePythonClient,
}
const NAMES = Object.keys(ENSURE)

const [command, ...services] = process.argv.slice(2)
if (command !== 'ensure' || services.length === 0 || services.some((name) => !NAMES.includes(name))) {
  console.error(`usage: node scripts/local-services.ts ensure <service>..., where a service is ${NAMES.join(', ')}`)
  process.exit(2)
}
for (const name of services) {
  await ENSURE[name]?.((line) => console.error(line)).catch((cause: unknown) => {
    console.error(cause instanceof Error ? cause.message : String(cause))
    process.exitCode = 1
  })
}
