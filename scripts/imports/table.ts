/** The import table: which file may import which, as globs over paths from the project's folder. */

/**
 * The purpose of a file. `kernel`: small things without a subject. `port`: the interface of a subject. `domain`: a subject's own logic.
 * `adapter`: a port over one technology. `http`: what the listeners of gateway and ops share, and `runs`: what workers and executors
 * share, so that neither imports the other. `service`: one process's code. `root`: where adapters are chosen and put together.
 */
export type Layer = 'kernel' | 'port' | 'domain' | 'adapter' | 'http' | 'runs' | 'service' | 'root' | 'script' | 'test'

/** The first row that matches a file is its layer. */
export const LAYERS: readonly (readonly [Layer, readonly string[]])[] = [
  ['root', ['services/*/{main,member,open-*,standalone}.ts', 'services/wiring/*.ts']],
  ['http', ['services/http/**']],
  ['runs', ['services/runs/**']],
  ['service', ['services/**']],
  ['port', ['shared/*/port.ts']],
  ['kernel', ['shared/*.ts', 'shared/config/**', 'shared/net/{event-parser,node-http}.ts']],
  [
    'adapter',
    [
      'shared/{broker,limits,rate}/**/{memory,redis}{,-*}.ts',
      'shared/store/{mongo,sqlite}/**',
      'shared/providers/{ai-sdk,chat,demo}/**',
      'shared/tools/mcp/**',
      'shared/net/egress{,-*}.ts',
      'shared/tracing/otel.ts',
      'shared/queue/{bullmq,memory}{,-*}.ts',
    ],
  ],
  ['domain', ['shared/**']],
  ['script', ['scripts/**']],
  ['test', ['test/**']],
]

/**
 * The layers that a layer may import. In addition, files of one subject (the folder below services/ or shared/) may import each
 * other within `domain` and within `service`; an adapter may import its own other files and the domain files of its subject.
 */
export const MAY_IMPORT: Record<Layer, readonly Layer[]> = {
  kernel: ['kernel'],
  port: ['kernel'],
  domain: ['kernel', 'port'],
  adapter: ['kernel', 'port'],
  http: ['kernel', 'port', 'domain', 'http'],
  runs: ['kernel', 'port', 'domain', 'runs'],
  service: ['kernel', 'port', 'domain', 'http', 'runs'],
  root: ['kernel', 'port', 'domain', 'adapter', 'http', 'runs', 'service', 'root'],
  script: ['kernel', 'port', 'domain', 'adapter', 'http', 'runs', 'service', 'root', 'script'],
  test: ['kernel', 'port', 'domain', 'adapter', 'http', 'runs', 'service', 'root', 'script', 'test'],
}

/** The adapters of a subject, by the beginning of their file's or folder's name. One adapter does not import another. */
export const ADAPTERS: readonly string[] = [
  'memory',
  'redis',
  'mongo',
  'sqlite',
  'ai-sdk',
  'chat',
  'demo',
  'mcp',
  'egress',
  'bullmq',
  'otel',
]

/** Domain subjects that may import other domain subjects. There is no way back. */
export const SIDEWAYS: Record<string, readonly string[]> = {
  engine: ['store', 'providers'],
  customers: ['store', 'engine'],
  plans: ['broker', 'engine', 'queue', 'store', 'tools'],
  flows: ['broker', 'store', 'engine', 'limits', 'tenant-config', 'tools'],
  tools: ['schemas'],
  schemas: ['limits', 'queue'],
  'tenant-config': ['net', 'providers', 'secrets', 'store'],
  limits: ['engine', 'tenant-config'],
  queue: ['limits'],
  webhooks: ['limits', 'tenant-config'],
}

/**
 * The files that may import a package or a Node module. A package without a row is for nobody in `shared` and `services`; a Node
 * module without a row is for all.
 */
export const PACKAGES: Record<string, readonly string[]> = {
  '@opentelemetry/*': ['shared/tracing/otel.ts'],
  multer: ['services/gateway/upload.ts'],
  'form-data': ['shared/transcription/**'],
  express: ['services/gateway/**', 'services/http/**', 'services/ops/**'],
  'swagger-ui-dist': ['services/gateway/**'],
  winston: ['shared/log.ts'],
  'prom-client': ['services/ops/**'],
  undici: ['shared/net/egress{,-*}.ts', 'shared/providers/ai-sdk/**'],
  '@ai-sdk/*': ['shared/providers/ai-sdk/**'],
  '@modelcontextprotocol/client': ['shared/tools/mcp/**'],
  '@pydantic/genai-prices': ['shared/providers/prices{,-*}.ts'],
  ajv: ['shared/api/**', 'shared/schemas/**'],
  'ajv-formats': ['shared/api/**'],
  yaml: ['shared/api/**', 'shared/flows/**', 'shared/tools/agents/**'],
  re2js: ['shared/schemas/**', 'shared/tools/**'],
  picomatch: ['shared/tools/**'],
  'lru-cache': ['shared/**', 'services/**'],
  ioredis: ['shared/broker/redis-link.ts'],
  bullmq: ['shared/queue/bullmq{,-*}.ts'],
  '@bull-board/*': ['services/ops/**'],
  croner: ['shared/queue/schedule-times.ts'],
  'jwks-rsa': ['shared/auth/**'],
  jsonwebtoken: ['shared/auth/**'],
  mongodb: ['shared/store/mongo/**'],
  'node:sqlite': ['shared/store/sqlite/**'],
  'node:process': ['services/*/main.ts', 'shared/loop-budget.ts'], // The latter needs only `nextTick`.
  'node:child_process': ['shared/tools/**'],
}

/** The files that may use a global. */
export const GLOBALS: Record<string, readonly string[]> = {
  // Only `process.kill` can end a process group, so the tools' process-group.ts needs it, and pattern-cost.ts the CPU time of its thread.
  process: [
    'services/*/main.ts',
    'services/wiring/process.ts',
    'shared/schemas/pattern-cost.ts',
    'shared/tools/process/process-group.ts',
  ],
  // `fetch` follows redirects to any address; net/egress checks each address.
  fetch: ['shared/net/egress{,-*}.ts'],
}

/** Imports at run time, each for what costs memory or time and is seldom needed. */
export const LAZY: readonly (readonly [from: string, to: string])[] = [
  ['services/{executor,gateway,worker,wiring}/*.ts', 'shared/{auth,net,providers,queue,store,tools}/**'],
  ['services/gateway/open-rate-limit.ts', 'shared/broker/redis-link.ts'], // The standalone form needs it only for a shared rate limit.
  ['shared/providers/**', '@ai-sdk/*'],
  ['shared/providers/**', 'undici'],
  ['shared/providers/**', '@pydantic/genai-prices'],
  ['shared/tools/**', '@modelcontextprotocol/client'],
  ['shared/tools/**', 'picomatch'],
  ['shared/tools/**', 're2js'],
  ['shared/schemas/**', 're2js'],
  ['shared/tools/**', 'shared/schemas/compile.ts'], // It loads ajv.
  ['services/ops/open-ops.ts', 'services/ops/**'], // It loads express in a worker, and takes a few ms of every start.
  ['services/ops/open-queues.ts', 'services/{http,ops}/**'], // Most processes are never asked for their queues.
  ['services/ops/open-queues.ts', 'shared/queue/bullmq-board.ts'],
  ['services/ops/**', 'prom-client'], // Most processes are never asked for their metrics.
  ['shared/queue/bullmq.ts', 'bullmq'], // It costs a gateway 75 ms and 20 MB, and few serve flows at once.
  ['services/wiring/tracing.ts', 'shared/tracing/otel.ts'], // It costs 25 MB, and few processes export traces.
  ['shared/tracing/otel.ts', '@opentelemetry/*'],
  ['services/gateway/open-transcription.ts', 'services/gateway/upload.ts'], // It loads multer.
  ['shared/transcription/**', 'form-data'],
  ['shared/api/**', 'yaml'],
  ['shared/flows/**', 'yaml'],
  ['shared/api/**', 'shared/api/decode.ts'], // It loads ajv.
]

/** Entry points. Node, mocha or a shell script uses their exports. */
export const ENTRIES: readonly string[] = [
  'services/*/main.ts',
  'scripts/*',
  'scripts/mutate/mocha-runner.ts',
  'scripts/{doctor,testing}/main.ts',
  'scripts/testing/group-reporter.ts',
  'test/*/main.ts',
  'test/hooks.ts',
  'test/support/typescript-6.ts',
  'test/**/*.test.ts',
]
