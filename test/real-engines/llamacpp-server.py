"""Runs llama.cpp's HTTP server as xllamacpp carries it:
llamacpp-server.py PORT chat|embedding|ranking MODEL [TEMPLATE] [lora=ADAPTER]"""
import signal
import sys

import xllamacpp

port, use, model, *others = sys.argv[1:]
adapters = [it.removeprefix("lora=") for it in others if it.startswith("lora=")]
template = [it for it in others if not it.startswith("lora=")]
parameters = xllamacpp.CommonParams()
parameters.hostnames = ["127.0.0.1"]
parameters.port = int(port)
parameters.model.path = model
parameters.n_parallel = 2
# A cached prompt changes the rounding, and with it the text.
parameters.cache_prompt = False
# One thread: llama.cpp's threads spin while they wait for each other, which stalls a busy machine.
parameters.cpuparams.n_threads = 1
parameters.cpuparams_batch.n_threads = 1
if use == "chat":
    parameters.n_ctx = 2048
else:
    parameters.embedding = True
if use == "ranking":
    parameters.pooling_type = xllamacpp.llama_pooling_type.LLAMA_POOLING_TYPE_RANK
if template:
    with open(template[0], encoding="utf-8") as file:
        parameters.chat_template = file.read()
# As --lora ADAPTER --lora-init-without-apply.
parameters.lora_adapters = [xllamacpp.CommonAdapterLoraInfo(it, 0.0) for it in adapters]
parameters.lora_init_without_apply = True
server = xllamacpp.Server(parameters)
signal.pause()
