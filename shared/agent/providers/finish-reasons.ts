/** How an answer ended. Only an answer with one of these ends is complete, or cut at a known place (D4.4). */
export type Ending = 'stop' | 'stop_sequence' | 'tool_use' | 'length' | 'filtered'

/** The finish reasons of all wire formats and of the servers that copy them, in lower case. */
const NAMES: Record<Ending, string> = {
  stop: 'stop end_turn pause_turn eos eos_token complete completed',
  stop_sequence: 'stop_sequence',
  tool_use: 'tool_calls tool_call tool_use function_call',
  length: 'length max_tokens max_output_tokens model_length model_context_window_exceeded continuation',
  filtered:
    'content_filter sensitive refusal safety image_safety recitation blocklist prohibited_content spii content_filtered',
}

const ENDINGS: ReadonlyMap<string, Ending> = new Map(
  Object.entries(NAMES).flatMap(([ending, names]) => names.split(' ').map((name) => [name, ending as Ending])),
)

/**
 * The ending for a provider's finish reason; `undefined` when the provider broke off the answer, also for unknown reasons. Google's
 * copy of the chat format adds details after a colon.
 */
export const endingOf = (rawReason: string): Ending | undefined =>
  ENDINGS.get(rawReason.toLowerCase().split(':', 1)[0] ?? '')
