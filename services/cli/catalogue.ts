import type { Define } from './cli.ts'

type Entry = { name: string; group: string; summary: string; load(): Promise<Define> }

const DAILY = 'Runs:'
const WORK = 'Flows and plans:'
const SERVER = 'Servers and sign-in:'

/** All commands, each in a file that is loaded when it is named. */
export const CATALOGUE: readonly Entry[] = [
  {
    name: 'run',
    group: DAILY,
    summary: 'run an agent once: the answer goes to stdout',
    load: async () => (await import('./commands/run.ts')).defineRun,
  },
  {
    name: 'chat',
    group: DAILY,
    summary: 'talk with an agent',
    load: async () => (await import('./commands/chat.ts')).defineChat,
  },
  {
    name: 'attach',
    group: DAILY,
    summary: 'follow a run, the run of a session, a plan or a batch',
    load: async () => (await import('./commands/attach.ts')).defineAttach,
  },
  {
    name: 'cancel',
    group: DAILY,
    summary: 'end runs, plans or batches',
    load: async () => (await import('./commands/cancel.ts')).defineCancel,
  },
  {
    name: 'steer',
    group: DAILY,
    summary: 'tell a run something while it is at work',
    load: async () => (await import('./commands/cancel.ts')).defineSteer,
  },
  {
    name: 'approvals',
    group: DAILY,
    summary: 'the permission requests that wait',
    load: async () => (await import('./commands/approvals.ts')).defineApprovals,
  },
  {
    name: 'allow',
    group: DAILY,
    summary: 'let a tool call run',
    load: async () => (await import('./commands/reply.ts')).defineAllow,
  },
  {
    name: 'deny',
    group: DAILY,
    summary: 'refuse a tool call',
    load: async () => (await import('./commands/reply.ts')).defineDeny,
  },
  {
    name: 'tool-calls',
    group: DAILY,
    summary: 'the calls of your own tools that wait for their answers',
    load: async () => (await import('./commands/tool-calls.ts')).defineToolCalls,
  },
  {
    name: 'answer',
    group: DAILY,
    summary: 'answer a call of your own tools',
    load: async () => (await import('./commands/tool-calls.ts')).defineAnswer,
  },
  {
    name: 'ls',
    group: DAILY,
    summary: 'what runs and has run',
    load: async () => (await import('./commands/ls.ts')).defineLs,
  },
  {
    name: 'sessions',
    group: DAILY,
    summary: 'the sessions that exist',
    load: async () => (await import('./commands/ls.ts')).defineSessions,
  },
  {
    name: 'show',
    group: DAILY,
    summary: 'all that is known of a run, plan, request, dispatch or session',
    load: async () => (await import('./commands/show.ts')).defineShow,
  },
  {
    name: 'logs',
    group: DAILY,
    summary: 'the events of a run or plan',
    load: async () => (await import('./commands/logs.ts')).defineLogs,
  },
  {
    name: 'why',
    group: DAILY,
    summary: 'what happened to a run, plan or dispatch, and what to do',
    load: async () => (await import('./commands/why.ts')).defineWhy,
  },
  {
    name: 'events',
    group: DAILY,
    summary: 'what happens to all runs, plans, flows and settings, as it happens',
    load: async () => (await import('./commands/events.ts')).defineEvents,
  },
  {
    name: 'tools',
    group: DAILY,
    summary: 'the tools that agents have here',
    load: async () => (await import('./commands/tools.ts')).defineTools,
  },
  {
    name: 'files',
    group: DAILY,
    summary: 'files that prompts and flows name',
    load: async () => (await import('./commands/files.ts')).defineFiles,
  },
  {
    name: 'transcribe',
    group: DAILY,
    summary: 'turn a recording into text',
    load: async () => (await import('./commands/transcribe.ts')).defineTranscribe,
  },
  {
    name: 'flows',
    group: WORK,
    summary: 'named flows: JSON in, JSON out',
    load: async () => (await import('./commands/flows.ts')).defineFlows,
  },
  {
    name: 'plans',
    group: WORK,
    summary: 'steps that run in the background',
    load: async () => (await import('./commands/plans.ts')).definePlans,
  },
  {
    name: 'schedules',
    group: WORK,
    summary: 'plans by the clock',
    load: async () => (await import('./commands/schedules.ts')).defineSchedules,
  },
  {
    name: 'dispatches',
    group: WORK,
    summary: 'the history of flows',
    load: async () => (await import('./commands/dispatches.ts')).defineDispatches,
  },
  {
    name: 'usage',
    group: WORK,
    summary: 'what was used, by hour or day',
    load: async () => (await import('./commands/usage.ts')).defineUsage,
  },
  {
    name: 'config',
    group: SERVER,
    summary: 'providers, keys, routing, limits and webhooks',
    load: async () => (await import('./commands/config.ts')).defineConfig,
  },
  {
    name: 'webhooks',
    group: SERVER,
    summary: 'where events are sent, and what has become of the messages',
    load: async () => (await import('./commands/webhooks.ts')).defineWebhooks,
  },
  {
    name: 'api',
    group: SERVER,
    summary: 'send a request to any path',
    load: async () => (await import('./commands/api.ts')).defineApi,
  },
  {
    name: 'init',
    group: SERVER,
    summary: 'write the settings of a server: provider, key and model, which are tried',
    load: async () => (await import('./commands/init.ts')).defineInit,
  },
  {
    name: 'serve',
    group: SERVER,
    summary: 'run a server on this machine',
    load: async () => (await import('./commands/serve.ts')).defineServe,
  },
  {
    name: 'cluster',
    group: SERVER,
    summary: 'run a cluster on this machine',
    load: async () => (await import('./commands/serve.ts')).defineCluster,
  },
  {
    name: 'doctor',
    group: SERVER,
    summary: 'look for faults of a server',
    load: async () => (await import('./commands/serve.ts')).defineDoctor,
  },
  {
    name: 'completion',
    group: SERVER,
    summary: 'the completion of a shell',
    load: async () => (await import('./commands/completion.ts')).defineCompletion,
  },
  {
    name: 'login',
    group: SERVER,
    summary: 'sign in at a server',
    load: async () => (await import('./commands/login.ts')).defineLogin,
  },
  {
    name: 'logout',
    group: SERVER,
    summary: 'forget the token',
    load: async () => (await import('./commands/login.ts')).defineLogout,
  },
  {
    name: 'whoami',
    group: SERVER,
    summary: 'who the token stands for, and where',
    load: async () => (await import('./commands/login.ts')).defineWhoami,
  },
  {
    name: 'profile',
    group: SERVER,
    summary: 'the servers that you use',
    load: async () => (await import('./commands/profile.ts')).defineProfile,
  },
]
