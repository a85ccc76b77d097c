# python_names.py - the names that the checker of Python knows: modules, functions, attributes and magics, and the
# rule for each. A module stands for everything in it; a name in a module is found under any alias.

NAMES = {
    "network": """socket ssl http.client http.server urllib.request urllib.robotparser urllib3 requests httpx aiohttp
        ftplib smtplib imaplib poplib telnetlib nntplib xmlrpc socketserver paramiko websocket websockets boto3 botocore
        grpc webbrowser antigravity pycurl asyncio.open_connection asyncio.start_server 
        _socket _ssl wget smtpd asyncore asynchat wsgiref logging.handlers tornado twisted flask fastapi uvicorn aiofiles.os
        pymongo redis psycopg2 psycopg asyncpg pymysql mysql.connector pyarrow.flight
        s3fs gcsfs dns scapy zmq openai anthropic docker huggingface_hub kaggle yfinance
        pandas_datareader gdown selenium playwright torch.hub seaborn.load_dataset sklearn.datasets.fetch_openml
        anyio.connect_tcp trio.open_tcp_stream""",
    "subprocess": """subprocess pty multiprocessing pexpect sh plumbum sarge fabric invoke git _posixsubprocess
        _multiprocessing concurrent.futures.ProcessPoolExecutor concurrent.futures.process os.system os.popen os.fork
        os.forkpty os.posix_spawn os.posix_spawnp os.execl os.execle os.execlp os.execlpe os.execv os.execve os.execvp
        os.execvpe os.spawnl os.spawnle os.spawnlp os.spawnlpe os.spawnv os.spawnve os.spawnvp os.spawnvpe os.startfile os._execvpe os._spawnvef
        posix asyncio.create_subprocess_exec asyncio.create_subprocess_shell asyncio.subprocess psutil.Popen
        anyio.run_process anyio.open_process trio.run_process numpy.distutils distutils pipes mailcap setuptools
        pip ensurepip venv
        tkinter _tkinter pydoc.pager pydoc.pipepager pydoc.tempfilepager test.support.script_helper IPython.utils.process
        torch.multiprocessing joblib.Parallel loky dask.distributed""",
    "native": """ctypes _ctypes cffi _cffi_backend mmap numpy.ctypeslib numpy.f2py cython pyximport os.memfd_create
        _posixshmem llvmlite weave""",
    "dynamic": """eval exec compile __import__ builtins importlib imp runpy code codeop pickle _pickle cPickle marshal
        dill cloudpickle shelve joblib zipimport pkgutil types.FunctionType types.CodeType types.ModuleType globals
        locals vars __builtins__ breakpoint pdb bdb trace cProfile profile timeit doctest idlelib _imp
        _frozen_importlib _frozen_importlib_external _xxsubinterpreters _interpreters _testcapi pydoc.locate
        pydoc.safeimport logging.config unittest.mock pandas.read_pickle pandas.eval numexpr torch.load yaml.unsafe_load
        yaml.load asteval typing.get_type_hints typing.ForwardRef annotationlib concurrent.interpreters rlcompleter
        IPython.embed IPython.start_ipython
        get_ipython().magic get_ipython().run_cell get_ipython().help get_ipython().context get_ipython().user_ns get_ipython().user_global_ns get_ipython().ex
        get_ipython().ev""",
    "internals": """sys.modules sys._getframe sys._current_frames sys.settrace sys.setprofile sys.meta_path
        sys.path_hooks sys.path_importer_cache __loader__ __spec__ gc inspect faulthandler _glovebox_magics _glovebox_kernel
        _glovebox_cell _glovebox_ipython _glovebox_script _glovebox_display""",
    "environment": "os.environ os.environb os.getenv os.getenvb os.putenv os.unsetenv",
}
RULES = {name: rule for rule, names in NAMES.items() for name in names.split()}
BARE = set("eval exec compile __import__ globals locals vars __builtins__ breakpoint __loader__ __spec__".split())
HOLD_FUNCTIONS = {"os", "sys", "types", "asyncio", "concurrent.futures", "pydoc", "psutil", "anyio", "trio", "pandas",
                  "torch", "yaml", "seaborn", "sklearn.datasets", "joblib"}  # the known names in them are not modules

# Attributes that are known whatever object they belong to: one that was passed on, a module that an earlier cell
# has imported, a module within another one.
ATTRIBUTES = {
    "subprocess": """system popen Popen check_output check_call getoutput getstatusoutput fork forkpty posix_spawn
        posix_spawnp execl execle execlp execlpe execv execve execvp execvpe spawnl spawnle spawnlp spawnlpe spawnv
        spawnve spawnvp spawnvpe _execvpe _spawnvef ProcessPoolExecutor subprocess_exec subprocess_shell create_subprocess_exec
        create_subprocess_shell""",
    "network": """urlopen urlretrieve create_connection create_server create_datagram_endpoint create_unix_connection
        create_unix_server sock_connect sock_sendto open_connection open_unix_connection start_unix_server
        getaddrinfo gethostbyname getnameinfo""",
    "native": "CDLL PyDLL cdll pydll pythonapi memfd_create enable_load_extension",
    "dynamic": "read_pickle run_line_magic run_cell_magic run_cell get_field _create_fn evaluate_forward_ref",
    "environment": "environ environb getenv getenvb",
}
HARMLESS = {"platform.system"}  # harmless, with the name of one of those
REACHED = set("""subprocess multiprocessing pty posix socket ssl ctypes mmap cffi importlib builtins runpy pickle
    shelve marshal webbrowser requests urllib3 tkinter""".split())  # modules within others, or of an earlier cell
PLAIN_REACHED = {"os", "sys"}  # the same; reported as imports, for the lists of a policy
CUSTOMARY = {"np": "numpy", "pd": "pandas", "sns": "seaborn"}  # the usual names if an earlier cell imported them
BY_ATTRIBUTE = {name: rule for rule, names in ATTRIBUTES.items() for name in names.split()}
INSIDE = {"__subclasses__", "__globals__", "__builtins__", "__code__", "__closure__", "__getattribute__",
          "__reduce__", "__reduce_ex__", "__mro__", "__bases__", "__base__", "__loader__", "__spec__", "gi_frame",
          "gi_code", "cr_frame", "ag_frame", "f_globals", "f_locals", "f_builtins", "f_back", "f_code", "tb_frame",
          "tb_next", "__dict__", "__self__", "__import__", "__wrapped__", "mro"}
EXPRESSIONS = {"query", "eval"}  # pandas: a text that may have names after @, calls and attributes
GETTERS = {"getattr", "setattr", "hasattr", "delattr", "operator.attrgetter", "operator.methodcaller"}
IMPORTERS = {"__import__", "importlib.import_module", "importlib.__import__"}
SHELLS = {"get_ipython", "IPython.get_ipython", "IPython.core.getipython.get_ipython"}
SIZED = {"bytes", "bytearray", "list", "tuple", "set", "numpy.zeros", "numpy.ones", "numpy.empty", "numpy.full",
         "numpy.arange", "numpy.random.rand", "numpy.random.randn", "numpy.random.random", "numpy.random.normal",
         "numpy.eye", "numpy.identity"}
ENDS = {"exit", "quit", "sys.exit", "os._exit", "os.abort"}
ENDLESS = {"itertools.count", "itertools.cycle", "itertools.repeat"}
SCHEMES = ("http://", "https://", "ftp://", "ftps://", "ws://", "wss://", "s3://", "ssh://")

# What a magic does with its line and its cell: `code` runs them, `nothing` neither runs nor reads anything, and a rule
# of precheck_rules.def names what it does. A magic that is not listed is `unchecked`.
LINE_MAGICS = {
    "code": "time timeit",
    "subprocess": "system sx ls cat mkdir rm cp mv pip conda",
    "dynamic": "run",
    "environment": "env set_env",
    "nothing": "cd pwd matplotlib config reset load_ext reload_ext autoreload precision pdb xmode who whos lsmagic",
}
CELL_MAGICS = {
    "code": "time timeit capture",
    "subprocess": "bash sh script python python3",
    "nothing": "writefile file html HTML markdown latex svg javascript js",
}
BY_LINE_MAGIC = {name: what for what, names in LINE_MAGICS.items() for name in names.split()}
BY_CELL_MAGIC = {name: what for what, names in CELL_MAGICS.items() for name in names.split()}
