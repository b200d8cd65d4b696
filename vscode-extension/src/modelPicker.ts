// Choosing the model: what the user picks becomes the setting, and the server restarts with it.
import * as vscode from "vscode";
import { SECTION } from "./configuration";
import { type Ask, addressProblem, findEndpoints, modelChoices } from "./models";

const TITLE = "fim-server: Choose a Model";

/** Milliseconds that a port of this machine may take to answer. */
const PATIENCE = 1_000;

/** Asks which model to complete with; nothing changes where the user leaves. */
export async function chooseModel(): Promise<void> {
  const configuration = vscode.workspace.getConfiguration(SECTION);
  const levels = configuration.inspect<string | null>("model");
  const chosen = await vscode.window.showQuickPick(modelChoices(configuration.get("model")), { title: TITLE });
  if (chosen === undefined) {
    return;
  }
  const value =
    typeof chosen.value === "object" && chosen.value !== null ? await asked(chosen.value.ask) : chosen.value;
  if (value === undefined) {
    return;
  }
  // Where the workspace names a model, the change would have no effect for the user.
  const target =
    levels?.workspaceValue === undefined ? vscode.ConfigurationTarget.Global : vscode.ConfigurationTarget.Workspace;
  await configuration.update("model", value === null ? undefined : value, target);
}

async function asked(what: Ask["ask"]): Promise<string | undefined> {
  switch (what) {
    case "file": {
      const filters = { "GGUF files": ["gguf"] };
      const files = await vscode.window.showOpenDialog({ title: TITLE, filters, canSelectMany: false });
      return files?.[0]?.fsPath;
    }
    case "endpoints":
      return await askEndpoint();
    case "address": {
      const prompt = "http://HOST:PORT, and #MODEL behind it where there are several";
      const text = await vscode.window.showInputBox({ title: TITLE, prompt, validateInput: addressProblem });
      return text?.trim() || undefined;
    }
    default: {
      const prompt = "A folder with a model, or a name on the Hugging Face hub, which is then downloaded";
      const text = await vscode.window.showInputBox({ title: TITLE, prompt });
      return text?.trim() || undefined;
    }
  }
}

async function askEndpoint(): Promise<string | undefined> {
  const location = vscode.ProgressLocation.Notification;
  const looking = { location, title: "fim-server: looking for endpoints on this machine" };
  const found = await vscode.window.withProgress(looking, () => findEndpoints(getJson));
  if (found.length === 0) {
    void vscode.window.showInformationMessage(
      "fim-server: no endpoint answers on the usual ports of llama.cpp, Ollama, LM Studio and vLLM.",
    );
    return undefined;
  }
  const items = found.map((one) => ({
    label: one.model,
    description: `${one.kind}, ${one.address}`,
    address: one.address,
  }));
  return (await vscode.window.showQuickPick(items, { title: TITLE }))?.address;
}

async function getJson(url: string): Promise<unknown> {
  try {
    const response = await fetch(url, { signal: AbortSignal.timeout(PATIENCE), redirect: "error" });
    return response.ok ? await response.json() : undefined;
  } catch {
    return undefined;
  }
}
