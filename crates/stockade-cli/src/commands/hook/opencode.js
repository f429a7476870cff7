import { spawnSync } from "node:child_process"

export const Stockade = async ({ directory }) => ({
  "tool.execute.before": async (input, output) => {
    if (input.tool !== "bash") return
    const question = { session_id: input.sessionID, cwd: directory, tool_input: output.args }
    const answer = spawnSync(program, ["hook", "rewrite", "opencode"], { input: JSON.stringify(question) })
    // An error keeps the command from running.
    if (answer.status !== 0) throw new Error(`stockade: ${answer.error ?? answer.stderr}`)
    if (answer.stdout.length > 0) output.args.command = JSON.parse(answer.stdout).command
  },
})
