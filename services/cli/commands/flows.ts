import { type Command, Option } from 'commander'
import type { Cli } from '../cli.ts'
import { check, diff, evaluate, get, list, publish, type RollbackOptions, remove, rollback } from '../flows/actions.ts'
import { type BatchOptions, batch, batches, type ResultsOptions, results } from '../flows/batch.ts'
import { edit } from '../flows/edit.ts'
import { type PushOptions, push } from '../flows/push.ts'
import { type RunFlowOptions, runFlow } from '../flows/run-flow.ts'
import { addListOptions, type ListOptions } from '../list.ts'
import { share, wholeNumber } from './options.ts'

export function defineFlows(command: Command, cli: Cli): void {
  defineReading(command, cli)
  defineEdit(command, cli)
  defineWriting(command, cli)
  defineBatch(command, cli)
  command
    .command('run <name>')
    .description('run a published flow: its output goes to stdout as JSON')
    .requiredOption('-i, --instance <name>', 'the provider instance')
    .option('-d, --input <json>', 'the input: JSON, or @FILE, or @- for stdin', '{}')
    .option('-m, --model <model>', 'the model')
    .option('--version <n>', 'a version that was published once', wholeNumber)
    .option('--wait <secs>', 'wait so long for a place where too many runs are at work', wholeNumber)
    .option('--priority <priority>', 'interactive, normal or batch')
    .option('--deadline <hours>', 'it has no haste, and ends by then: print the id of its run and leave', Number)
    .option('--key <key>', 'the same key starts one run')
    .option('--json', 'print one event a line, and as the last line the result')
    .action((name: string, options: RunFlowOptions) => runFlow(name, options, cli))
}

function defineBatch(command: Command, cli: Cli): void {
  command
    .command('batch <name> <file>')
    .description(
      'run a published flow for each line of a file, {"custom_id", "input"}: the results go to stdout as JSONL',
    )
    .requiredOption('-i, --instance <name>', 'the provider instance')
    .option('-m, --model <model>', 'the model')
    .option('--version <n>', 'a version that was published once', wholeNumber)
    .option(
      '--deadline <hours>',
      'items that have not begun by then are not run; from 1 on for half the price at some',
      Number,
    )
    .option('--key <key>', 'the same key starts one batch')
    .option('--out <file>', 'write the results to a new file')
    .addOption(
      new Option('--detach', 'print the id of the batch, and do not wait for it: `ae attach ID` does').conflicts('out'),
    )
    .action((name: string, file: string, options: BatchOptions) => batch({ name, file, ...options }, cli))
  command
    .command('results <batch>')
    .description('the results of a batch by now, as JSONL')
    .option('--out <file>', 'write them to a new file')
    .action((id: string, options: ResultsOptions) => results(id, options, cli))
  addListOptions(command.command('batches').description('the batches, newest first'))
    .option('--flow <name>', 'of a flow')
    .option('--status <status>', 'running, cancelling, done or cancelled')
    .action((options: ListOptions & { flow?: string; status?: string }) => batches(options, cli))
}

function defineReading(command: Command, cli: Cli): void {
  addListOptions(command.command('ls').description('the flows')).action((options: ListOptions) => list(options, cli))
  command
    .command('get <name>')
    .description('print a definition as YAML, as FLOWS_DIR and push take it')
    .addOption(new Option('-o, --output <form>', 'how it is printed').choices(['yaml', 'json']).default('yaml'))
    .action((name: string, options: { output: 'yaml' | 'json' }) => get(name, options, cli))
  command
    .command('check <file-or-name>')
    .description('say all that is wrong with a definition in a file, or with a stored flow, and show its prompts')
    .option('-d, --input <json>', 'a sample input: JSON or @FILE')
    .action((name: string, options: { input?: string }) => check(name, options, cli))
  command
    .command('diff <name>')
    .description('what differs between the draft and the published version, or between two versions')
    .option('--from <n>', 'a version', wholeNumber)
    .option('--to <n>', 'a version', wholeNumber)
    .action((name: string, options: { from?: number; to?: number }) => diff(name, options, cli))
}

function defineEdit(command: Command, cli: Cli): void {
  command
    .command('edit <name>')
    .description('change the draft in $EDITOR; the changes are shown before they are stored')
    .option('--json', 'as JSON, not as YAML')
    .option('-y, --yes', 'do not ask')
    .option('--keep-published', 'let the published version run on')
    .action((name: string, options: { json?: boolean; yes?: boolean; keepPublished?: boolean }) =>
      edit(name, options, cli),
    )
}

function defineWriting(command: Command, cli: Cli): void {
  command
    .command('push <dir>')
    .description('make the flows those of a folder of YAML files; the changes are shown first')
    .option('--prune', 'delete flows that are not in the folder')
    .option('-y, --yes', 'do not ask')
    .option('--publish', 'publish what is stored')
    .option('--keep-published', 'let the published versions run on')
    .action((dir: string, options: PushOptions) => push(dir, options, cli))
  command
    .command('publish <name>')
    .description('publish the draft')
    .option(
      '--require-pass-rate <share>',
      'only when the newest evaluation has at least this share, such as 0.9',
      share,
    )
    .action((name: string, options: { requirePassRate?: number }) => publish(name, options, cli))
  command
    .command('evaluate <name>')
    .description('compare the draft with the published version on the inputs of earlier runs')
    .option('-n, --limit <n>', 'so many inputs', wholeNumber)
    .option('-i, --instance <name>', 'the provider instance')
    .option('-m, --model <model>', 'the model')
    .option('--json', 'print the report as JSON')
    .action((name: string, options: object) => evaluate(name, options, cli))
  command
    .command('rollback <name> <version>')
    .description('store an earlier version as the draft')
    .option('--keep-published', 'let the published version run on')
    .option('--publish', 'publish it at once')
    .action((name: string, version: string, options: RollbackOptions) => rollback({ name, version, ...options }, cli))
  command
    .command('rm <name>')
    .description('delete a flow')
    .option('-y, --yes', 'do not ask')
    .action((name: string, options: { yes?: boolean }) => remove(name, options, cli))
}
