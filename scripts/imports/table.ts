/** The import table: which file may import which, as globs over paths from the project's folder. */

/** The room that puts adapters together and starts processes. */
export const ROOTS = 'roots'

/**
 * The rooms of the house, from the ground up. A file imports files of its own room and of the rooms before it, so that nothing below knows
 * who is above. The last room that matches is a file's own. `shared/` is the system and `services/` are its processes.
 */
export const ROOMS: readonly (readonly [room: string, files: string])[] = [
  ['reading', 'shared/reading/**'],
  ['kernel', 'shared/kernel/**'],
  ['platform/config', 'shared/platform/config/**'],
  ['platform/net', 'shared/platform/net/**'],
  ['platform/objects', 'shared/platform/objects/**'],
  ['platform/api', 'shared/platform/api/**'],
  ['client', 'shared/client/**'],
  ['platform/store', 'shared/platform/store/**'],
  ['platform/tracing', 'shared/platform/tracing/**'],
  ['platform/fairness', 'shared/platform/fairness/**'],
  ['platform/redis', 'shared/platform/redis/**'],
  ['platform/schemas', 'shared/platform/schemas/**'],
  ['agent/providers', 'shared/agent/providers/**'],
  ['agent/transcription', 'shared/agent/transcription/**'],
  ['agent/files', 'shared/agent/files/**'],
  ['agent/tools', 'shared/agent/tools/**'],
  ['agent/engine', 'shared/agent/engine/**'],
  ['agent/customers', 'shared/agent/customers/**'],
  ['agent/sessions', 'shared/agent/sessions/**'],
  ['cluster/lists', 'shared/cluster/list-page.ts'],
  ['cluster/journal', 'shared/cluster/journal/**'],
  ['cluster/permissions', 'shared/cluster/permissions/**'],
  ['cluster/bus', 'shared/cluster/bus/**'],
  ['cluster/members', 'shared/cluster/members/**'],
  ['cluster/owners', 'shared/cluster/owners/**'],
  ['cluster/commands', 'shared/cluster/commands/**'],
  ['cluster/following', 'shared/cluster/following/**'],
  ['cluster/relay', 'shared/cluster/relay/**'],
  ['cluster/adapters', 'shared/cluster/{memory,memory-cluster,redis-ports}.ts'],
  ['tenancy/auth', 'shared/tenancy/auth/**'],
  ['tenancy/rate', 'shared/tenancy/rate/**'],
  ['tenancy/events', 'shared/tenancy/events/**'],
  ['tenancy/secrets', 'shared/tenancy/secrets/**'],
  ['tenancy/tenant-config', 'shared/tenancy/tenant-config/**'],
  ['tenancy/webhooks', 'shared/tenancy/webhooks/**'],
  ['tenancy/room', 'shared/tenancy/room/**'],
  ['tenancy/limits', 'shared/tenancy/limits/**'],
  ['tenancy/usage', 'shared/tenancy/usage/**'],
  ['work/queue', 'shared/work/queue/**'],
  ['work/sessions', 'shared/work/sessions/**'],
  ['work/runs', 'shared/work/runs/**'],
  ['work/plans', 'shared/work/plans/**'],
  ['work/flows', 'shared/work/flows/**'],
  ['services/console', 'services/console/**'],
  ['services/http', 'services/http/**'],
  ['services/ops', 'services/ops/**'],
  ['services/gateway', 'services/gateway/**'],
  ['services/worker', 'services/worker/**'],
  ['services/executor', 'services/executor/**'],
  ['services/cli', 'services/cli/**'],
  [ROOTS, 'services/{*/{main,member,open-*,create-*,standalone},wiring/{*,*/*}}.ts'],
]

/** Rooms that do not know each other, by the beginnings of their names. */
export const BLIND: readonly (readonly [string, string])[] = [
  ['agent', 'cluster'],
  ['services/ops', 'services/gateway'],
  ['services/gateway', 'services/worker'],
  ['services/gateway', 'services/executor'],
  ['services/worker', 'services/executor'],
  // A program for browsers and one for terminals: they use the API only through the client.
  ...['services/console', 'services/cli'].flatMap((program) =>
    [
      ...['kernel', 'platform', 'agent', 'cluster', 'tenancy', 'work'],
      ...['http', 'ops', 'gateway', 'worker', 'executor'].map((name) => `services/${name}`),
    ].map((room) => [program, room] as const),
  ),
  ['services/console', 'services/cli'],
]

/** The rooms of packages that run elsewhere, too: the only files that theirs import, and the only files that import theirs. */
export const APART: readonly (readonly [room: string, imports: string, importers: string])[] = [
  ['client', 'shared/platform/api/openapi.d.ts', 'services/{cli,console}/**'],
]

/** The files that put a port on one technology, by its name. Only roots and the files of the same technology import them. */
export const ADAPTERS: readonly (readonly [technology: string, files: readonly string[]])[] = [
  [
    'memory',
    ['shared/cluster/{memory,**/memory-*}.ts', 'shared/{tenancy/{events,limits,rate},work/queue}/memory{,-*}.ts'],
  ],
  ['redis', ['shared/cluster/**/redis-*.ts', 'shared/tenancy/{events,limits,rate,room}/redis{,-*}.ts']],
  ['mongo', ['shared/platform/store/mongo/**']],
  ['sqlite', ['shared/platform/store/sqlite/**']],
  ['bullmq', ['shared/work/queue/bullmq{,-*}.ts']],
  ['ai-sdk', ['shared/agent/providers/ai-sdk/**']],
  ['chat', ['shared/agent/providers/chat/**']],
  ['demo', ['shared/agent/providers/demo/**']],
  ['mcp', ['shared/agent/tools/mcp/**']],
  ['s3', ['shared/platform/objects/s3.ts']],
  ['disk', ['shared/platform/objects/disk.ts']],
  ['egress', ['shared/platform/net/egress{,-*}.ts']],
  ['otel', ['shared/platform/tracing/otel.ts']],
]

/**
 * The files that may import a package or a Node module. A package without a row is for nobody in `shared` and `services`; a Node
 * module without a row is for all.
 */
export const PACKAGES: Record<string, readonly string[]> = {
  '@opentelemetry/*': ['shared/platform/tracing/otel.ts'],
  aws4fetch: ['shared/platform/objects/s3.ts'],
  'file-type': ['shared/agent/files/media-type.ts'],
  'image-size': ['shared/agent/files/media-type.ts'],
  multer: ['services/gateway/bodies/upload-form.ts'],
  '@tus/server': ['services/gateway/bodies/tus.ts'],
  'form-data': ['shared/agent/transcription/**'],
  commander: ['services/cli/**'],
  express: ['services/gateway/**', 'services/http/**', 'services/ops/**'],
  'swagger-ui-dist': ['services/gateway/**'],
  preact: ['services/console/**'],
  '@preact/signals': ['services/console/**'],
  'markdown-it': ['services/console/parts/markdown/**'],
  oauth4webapi: ['services/console/sign-in/**'],
  winston: ['shared/kernel/log.ts'],
  'prom-client': ['services/ops/**'],
  undici: [
    'shared/platform/net/{egress{,-*},guarded-connector}.ts',
    'shared/agent/providers/{connections,{ai-sdk,chat}/transport}.ts',
  ],
  '@ai-sdk/*': ['shared/agent/providers/ai-sdk/**'],
  '@modelcontextprotocol/client': ['shared/agent/tools/mcp/**'],
  '@modelcontextprotocol/server': ['services/gateway/dialects/mcp/**'],
  '@pydantic/genai-prices': ['shared/agent/providers/prices{,-*}.ts'],
  ajv: ['shared/platform/api/**', 'shared/platform/schemas/**'],
  'ajv-formats': ['shared/platform/api/**'],
  yaml: ['services/{cli,console/pages/flows/edit}/**', 'shared/{platform/api,work/flows,agent/tools/agents}/**'],
  re2js: ['shared/platform/schemas/**', 'shared/agent/tools/**'],
  picomatch: ['shared/agent/tools/**'],
  'jsonc-parser': ['shared/reading/json-places.ts'],
  jsonrepair: ['shared/agent/engine/answers/repair.ts'],
  'lru-cache': ['shared/**', 'services/**'],
  ioredis: ['shared/platform/redis/{connect,link}.ts'],
  bullmq: ['shared/work/queue/bullmq{,-*}.ts'],
  '@bull-board/*': ['services/ops/**'],
  croner: ['shared/work/queue/schedule-times.ts'],
  diff: ['shared/agent/tools/workspace/file-diff.ts'],
  'jwks-rsa': ['shared/tenancy/auth/**'],
  jsonwebtoken: ['shared/tenancy/auth/**'],
  mongodb: ['shared/platform/store/mongo/**'],
  'node:sqlite': ['shared/platform/store/sqlite/**'],
  'node:process': ['services/*/main.ts', 'shared/kernel/async/loop-budget.ts'], // The latter needs only `nextTick`.
  'node:child_process': ['services/cli/**', 'shared/agent/tools/**'],
}

/** Exports that only some files of `shared` and `services` may import, by the file that has them and their name. */
export const NAMES: readonly { file: string; name: string; users: readonly string[] }[] = [
  // The secrets of all parts are in it: each part gets its group of them.
  {
    file: 'shared/platform/config/config.ts',
    name: 'Config',
    users: ['services/wiring/process.ts', 'shared/platform/config/groups.ts'],
  },
]

/** The files that may use a global. */
export const GLOBALS: Record<string, readonly string[]> = {
  // Only `process.kill` can end a process group, so the tools' process-group.ts needs it, and pattern-cost.ts the CPU time of its thread.
  process: [
    'services/*/main.ts',
    'services/wiring/process.ts',
    'shared/platform/schemas/pattern-cost.ts',
    'shared/agent/tools/process/process-group.ts',
  ],
  // `fetch` follows redirects to any address; net/egress checks each address.
  fetch: [
    'shared/platform/net/egress{,-*}.ts',
    'shared/client/**',
    'services/console/{api,sign-in}/**',
    'services/cli/connect/{device-flow,transfer}.ts',
  ],
}

/** Imports at run time, each for what costs memory or time and is seldom needed. */
export const LAZY: readonly (readonly [from: string, to: string])[] = [
  ['services/*/main.ts', 'services/*/{member,standalone}.ts'], // After `runProcess` has chosen how files are found.
  [
    'services/{executor,gateway,worker,wiring}/**/*.ts',
    'shared/{platform/{net,objects,store},agent/{providers,tools},tenancy/auth,work/queue}/**',
  ],
  ['services/cli/**', 'services/cli/**'], // Each command is loaded when it is named, so that all start at once.
  ['services/cli/**', 'yaml'],
  ['services/console/boot.ts', 'services/console/main.tsx'], // After the first paint.
  ['services/console/main.tsx', 'services/console/base/show-texts.ts'], // Beside the sign-in: no part of the shell.
  ['services/gateway/open-http.ts', 'shared/platform/redis/link.ts'], // The standalone form needs it only for a shared rate limit.
  ['shared/agent/providers/**', '@ai-sdk/*'],
  ['shared/agent/providers/**', 'undici'],
  ['shared/agent/providers/**', '@pydantic/genai-prices'],
  ['shared/agent/tools/**', '@modelcontextprotocol/client'],
  ['shared/agent/tools/**', 'picomatch'],
  ['shared/agent/tools/**', 're2js'],
  ['shared/platform/schemas/**', 're2js'],
  ['shared/agent/tools/**', 'shared/platform/schemas/compile.ts'], // It loads ajv.
  ['shared/agent/tools/**', 'shared/agent/tools/workspace/file-diff.ts'], // It loads diff.
  ['services/ops/open-ops.ts', 'services/ops/**'], // It loads express in a worker, and takes a few ms of every start.
  ['services/ops/open-queues.ts', 'services/{http,ops}/**'], // Most processes are never asked for their queues.
  ['services/ops/open-queues.ts', 'shared/work/queue/bullmq.ts'],
  ['services/ops/**', 'prom-client'], // Most processes are never asked for their metrics.
  ['shared/work/queue/bullmq.ts', 'bullmq'], // It costs a gateway 75 ms and 20 MB, and few serve flows at once.
  ['services/wiring/open-workspaces.ts', 'shared/work/runs/kept/**'], // Few processes keep their workspaces in a store.
  ['services/wiring/open-tracing.ts', 'shared/platform/tracing/otel.ts'], // It costs 25 MB, and few processes export traces.
  ['shared/platform/tracing/otel.ts', '@opentelemetry/*'],
  ['services/gateway/dialects/mcp/mcp-routes.ts', 'services/gateway/dialects/mcp/handler.ts'], // It loads the SDK, which takes 30 MB.
  ['services/gateway/open-uploads.ts', 'services/gateway/bodies/upload.ts'], // It loads multer.
  ['services/gateway/routes/files.ts', 'services/gateway/bodies/tus.ts'], // It loads tus's server.
  ['shared/agent/files/**', 'file-type'],
  ['shared/agent/files/**', 'image-size'],
  ['shared/agent/transcription/**', 'form-data'],
  ['shared/platform/api/**', 'yaml'],
  ['shared/work/flows/**', 'yaml'],
  ['shared/platform/api/**', 'shared/platform/api/decode.ts'], // It loads ajv.
  ['services/console/**', 'services/console/{pages,parts}/**'], // A page's code is loaded when the page is opened.
  ['services/console/sign-in/start.ts', 'services/console/sign-in/with-tokens.ts'], // Loaded only if people sign in with tokens.
  ['services/console/shell/console.tsx', 'services/console/api/notices.ts'], // Loaded after the first page was drawn.
  ['services/console/shell/*.tsx', 'services/console/sign-in/{expired,sign-in-page,who-is-here}.tsx'], // Loaded when shown, which is rare.
]

/** Entry points. Node, mocha or a shell script uses their exports. */
export const ENTRIES: readonly string[] = [
  'services/*/main.ts',
  'services/console/{main,pages/cluster/main}.tsx',
  'shared/client/client.ts',
  'scripts/*',
  'scripts/mutate/mocha-runner.ts',
  'scripts/{doctor,testing}/main.ts',
  'scripts/testing/group-reporter.ts',
  'test/*/main.ts',
  'test/hooks.ts',
  'scripts/typescript-6.ts',
  'test/**/*.test.ts',
]
